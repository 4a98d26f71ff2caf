#include "trial_runner/agent/gpus.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace espalier {
namespace {

// The part of NVML's interface that is used, as its reference documents it.
constexpr int kNvmlSuccess = 0;
constexpr int kNvmlDriverNotLoaded = 9;
constexpr unsigned kNvmlTextBytes = 96;  // NVML_DEVICE_NAME_V2_BUFFER_SIZE, _UUID_V2_BUFFER_SIZE
using NvmlDevice = void*;
struct NvmlMemory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct NvmlFunctions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, NvmlDevice*) = nullptr;
  int (*name)(NvmlDevice, char*, unsigned) = nullptr;
  int (*uuid)(NvmlDevice, char*, unsigned) = nullptr;
  int (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
};

struct LibraryCloser {
  void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, LibraryCloser>;

// A test names a library of its own here.
const char* LibraryName() {
  const char* named = std::getenv("ESPALIER_NVML");
  return named == nullptr ? "libnvidia-ml.so.1" : named;
}

template <typename Function>
absl::Status Find(void* library, const char* symbol, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, symbol));
  if (function != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the NVIDIA driver's ", LibraryName(),
                                                    " has no ", symbol,
                                                    ": a newer driver is needed, or --gpus none"));
}

absl::StatusOr<NvmlFunctions> FindAll(void* library) {
  NvmlFunctions f;
  ESPALIER_RETURN_IF_ERROR(Find(library, "nvmlInit_v2", f.init));
  ESPALIER_RETURN_IF_ERROR(Find(library, "nvmlShutdown", f.shutdown));
  ESPALIER_RETURN_IF_ERROR(Find(library, "nvmlErrorString", f.error_string));
  ESPALIER_RETURN_IF_ERROR(Find(library, "nvmlDeviceGetCount_v2", f.count));
  ESPALIER_RETURN_IF_ERROR(Find(library, "nvmlDeviceGetHandleByIndex_v2", f.handle));
  ESPALIER_RETURN_IF_ERROR(Find(library, "nvmlDeviceGetName", f.name));
  ESPALIER_RETURN_IF_ERROR(Find(library, "nvmlDeviceGetUUID", f.uuid));
  ESPALIER_RETURN_IF_ERROR(Find(library, "nvmlDeviceGetMemoryInfo", f.memory));
  return f;
}

class Nvml final : public GpuDriver {
 public:
  Nvml(Library library, NvmlFunctions nvml) : library_(std::move(library)), nvml_(nvml) {}
  ~Nvml() override { nvml_.shutdown(); }

  absl::StatusOr<std::vector<Gpu>> Look() override {
    unsigned count = 0;
    if (const int result = nvml_.count(&count); result != kNvmlSuccess) {
      return absl::FailedPreconditionError(
          absl::StrCat("the NVIDIA driver does not tell its GPUs: ", nvml_.error_string(result)));
    }
    std::vector<Gpu> gpus;
    for (unsigned i = 0; i < count; ++i) gpus.push_back(LookAt(i));
    return gpus;
  }

 private:
  Gpu LookAt(unsigned index) const {
    Gpu gpu;
    gpu.index = static_cast<int>(index);
    NvmlDevice device = nullptr;
    std::array<char, kNvmlTextBytes> text{};
    NvmlMemory memory{};
    if (const int result = nvml_.handle(index, &device); result != kNvmlSuccess) {
      gpu.trouble = nvml_.error_string(result);
      return gpu;
    }
    const auto note = [&](int result) {
      if (result != kNvmlSuccess && gpu.trouble.empty()) gpu.trouble = nvml_.error_string(result);
      return result == kNvmlSuccess;
    };
    if (note(nvml_.name(device, text.data(), kNvmlTextBytes))) gpu.name = text.data();
    if (note(nvml_.uuid(device, text.data(), kNvmlTextBytes))) gpu.uuid = text.data();
    if (note(nvml_.memory(device, &memory))) {
      gpu.memory_bytes = static_cast<std::int64_t>(memory.total);
    }
    return gpu;
  }

  Library library_;
  NvmlFunctions nvml_;
};

std::string Indices(const std::vector<Gpu>& gpus) {
  return absl::StrJoin(gpus, ", ",
                       [](std::string* out, const Gpu& gpu) { absl::StrAppend(out, gpu.index); });
}

const Gpu* FindByName(const std::vector<Gpu>& gpus, std::string_view name) {
  int index = -1;
  const bool number = absl::SimpleAtoi(absl::string_view(name.data(), name.size()), &index);
  for (const Gpu& gpu : gpus) {
    if (number ? gpu.index == index : !name.empty() && gpu.uuid.starts_with(name)) return &gpu;
  }
  return nullptr;
}

std::vector<std::string> Listed(std::string_view list) {
  std::vector<std::string> words = absl::StrSplit(absl::string_view(list.data(), list.size()), ',');
  for (std::string& word : words) absl::StripAsciiWhitespace(&word);
  return words;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GpuDriver>> GpuDriver::Open() {
  Library library(dlopen(LibraryName(), RTLD_NOW | RTLD_LOCAL));
  if (library == nullptr) return nullptr;
  ESPALIER_ASSIGN_OR_RETURN(const NvmlFunctions nvml, FindAll(library.get()));
  const int result = nvml.init();
  if (result == kNvmlDriverNotLoaded) return nullptr;
  if (result != kNvmlSuccess) {
    return absl::FailedPreconditionError(
        absl::StrCat("the NVIDIA driver does not work: ", nvml.error_string(result),
                     " (--gpus none does without)"));
  }
  return std::make_unique<Nvml>(std::move(library), nvml);
}

std::vector<Gpu> VisibleGpus(const std::vector<Gpu>& gpus, std::string_view visible) {
  std::vector<Gpu> seen;
  for (const std::string& name : Listed(visible)) {
    const Gpu* gpu = FindByName(gpus, name);
    if (gpu == nullptr) break;  // CUDA itself sees none of those that follow either
    seen.push_back(*gpu);
  }
  return seen;
}

absl::StatusOr<std::vector<Gpu>> ChooseGpus(const std::vector<Gpu>& gpus, std::string_view asked) {
  std::vector<Gpu> chosen;
  if (asked == "none") return chosen;
  if (asked == "all") {
    std::copy_if(gpus.begin(), gpus.end(), std::back_inserter(chosen),
                 [](const Gpu& gpu) { return gpu.trouble.empty(); });
    return chosen;
  }
  for (const std::string& word : Listed(asked)) {
    int index = 0;
    if (!absl::SimpleAtoi(word, &index)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", std::string(asked), "\": must be all, none, or indices of GPUs like 0,2"));
    }
    const Gpu* gpu = FindByName(gpus, word);
    if (gpu == nullptr) {
      return absl::InvalidArgumentError(
          gpus.empty()
              ? absl::StrCat("there is no GPU ", word, ": this machine has none")
              : absl::StrCat("there is no GPU ", word, ": this machine has ", Indices(gpus)));
    }
    if (!gpu->trouble.empty()) {
      return absl::FailedPreconditionError(absl::StrCat("GPU ", word, ": ", gpu->trouble));
    }
    if (std::find(chosen.begin(), chosen.end(), *gpu) != chosen.end()) {
      return absl::InvalidArgumentError(absl::StrCat("GPU ", word, " is named twice"));
    }
    chosen.push_back(*gpu);
  }
  return chosen;
}

}  // namespace espalier
