#include "trial_runner/agent/gpus/gpus.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace espalier {
namespace {

// The part of NVML's interface that is used, as its reference documents it.
constexpr int kNvmlSuccess = 0;
constexpr int kNvmlNotSupported = 3;
constexpr int kNvmlDriverNotLoaded = 9;
constexpr unsigned kMigEnabled = 1;
constexpr unsigned kNvmlTextBytes = 96;  // NVML_DEVICE_NAME_V2_BUFFER_SIZE, _UUID_V2_BUFFER_SIZE
using NvmlDevice = void*;
struct NvmlMemory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

// nvmlFieldValue_t, and the one field that is asked for.
constexpr unsigned kRecoveryAction = 230;  // NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
struct NvmlFieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp;
  long long latency_us;
  int type;
  int result;
  union {
    unsigned number;
    unsigned long long widest;
  } value;
};

// As many CPUs as sched_setaffinity can be told of.
constexpr unsigned kCpuWords = 16;
constexpr unsigned kBitsOfWord = 64;
using NvmlCpus = std::array<unsigned long, kCpuWords>;

struct NvmlFunctions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, NvmlDevice*) = nullptr;
  int (*name)(NvmlDevice, char*, unsigned) = nullptr;
  int (*uuid)(NvmlDevice, char*, unsigned) = nullptr;
  int (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
  // Drivers before 450 have none of these: none of their GPUs is divided.
  int (*mig_mode)(NvmlDevice, unsigned* current, unsigned* pending) = nullptr;
  int (*most_instances)(NvmlDevice, unsigned*) = nullptr;
  int (*instance)(NvmlDevice, unsigned, NvmlDevice*) = nullptr;
  // Not all drivers and GPUs have these.
  int (*fields)(NvmlDevice, int count, NvmlFieldValue*) = nullptr;
  int (*remapped_rows)(NvmlDevice, unsigned* correctable, unsigned* uncorrectable,
                       unsigned* pending, unsigned* failed) = nullptr;
  int (*cpus)(NvmlDevice, unsigned words, unsigned long*) = nullptr;
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
void FindIfThere(void* library, const char* symbol, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, symbol));
}

template <typename Function>
absl::Status Find(void* library, const char* symbol, Function*& function) {
  FindIfThere(library, symbol, function);
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
  FindIfThere(library, "nvmlDeviceGetMigMode", f.mig_mode);
  FindIfThere(library, "nvmlDeviceGetMaxMigDeviceCount", f.most_instances);
  FindIfThere(library, "nvmlDeviceGetMigDeviceHandleByIndex", f.instance);
  FindIfThere(library, "nvmlDeviceGetFieldValues", f.fields);
  FindIfThere(library, "nvmlDeviceGetRemappedRows", f.remapped_rows);
  FindIfThere(library, "nvmlDeviceGetCpuAffinity", f.cpus);
  return f;
}

// What nvmlInit has answered. From then on the driver's files are open, and no GPU can be reset.
absl::Status Held(const NvmlFunctions& nvml, int result) {
  if (result == kNvmlSuccess) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the NVIDIA driver does not work: ", nvml.error_string(result),
                   " (--gpus none does without)"));
}

class Nvml final : public GpuDriver {
 public:
  Nvml(Library library, const NvmlFunctions& nvml) : library_(std::move(library)), nvml_(nvml) {}

  absl::StatusOr<std::vector<Gpu>> Look() override {
    ESPALIER_RETURN_IF_ERROR(Held(nvml_, nvml_.init()));
    const absl::Cleanup let_go = [this] { nvml_.shutdown(); };
    unsigned count = 0;
    if (const int result = nvml_.count(&count); result != kNvmlSuccess) {
      return absl::FailedPreconditionError(
          absl::StrCat("the NVIDIA driver does not tell its GPUs: ", nvml_.error_string(result)));
    }
    std::vector<Gpu> gpus;
    for (unsigned i = 0; i < count; ++i) AddGpu(i, gpus);
    const bool all_count = std::all_of(gpus.begin(), gpus.end(), [](const Gpu& gpu) {
      return gpu.trouble.empty() && !gpu.uuid.starts_with("MIG-");
    });
    for (Gpu& gpu : gpus) gpu.cuda_index = all_count && gpus.size() == count ? gpu.index : -1;
    return gpus;
  }

 private:
  // What a GPU that answers all questions has to be given before it can be relied on. Empty:
  // nothing that the driver knows of.
  std::string Wants(NvmlDevice device) const {
    NvmlFieldValue asked{};
    asked.field = kRecoveryAction;
    if (nvml_.fields != nullptr && nvml_.fields(device, 1, &asked) == kNvmlSuccess &&
        asked.result == kNvmlSuccess) {
      switch (asked.value.number) {
        case 1:
          return "the driver says that it has to be reset";
        case 2:
          return "the driver says that the machine has to be rebooted";
        case 3:
          return "the driver says that its traffic with other GPUs has to end";
        case 4:
          return "the driver says that it has to be drained and reset";
        default:
          break;
      }
    }
    unsigned correctable = 0;
    unsigned uncorrectable = 0;
    unsigned pending = 0;
    unsigned failed = 0;
    if (nvml_.remapped_rows == nullptr || nvml_.remapped_rows(device, &correctable, &uncorrectable,
                                                              &pending, &failed) != kNvmlSuccess) {
      return "";
    }
    if (failed != 0) return "a broken row of its memory has no replacement";
    return pending != 0 ? "a broken row of its memory is replaced once it is reset" : "";
  }

  std::vector<int> NearCpus(NvmlDevice device) const {
    NvmlCpus words{};
    std::vector<int> cpus;
    if (nvml_.cpus == nullptr || nvml_.cpus(device, kCpuWords, words.data()) != kNvmlSuccess) {
      return cpus;
    }
    for (unsigned cpu = 0; cpu < kCpuWords * kBitsOfWord; ++cpu) {
      if ((words[cpu / kBitsOfWord] >> (cpu % kBitsOfWord) & 1) != 0) {
        cpus.push_back(static_cast<int>(cpu));
      }
    }
    return cpus;
  }

  // The GPU itself or, where it is divided (MIG), its instances: a process can use one of those,
  // and not the whole.
  void AddGpu(unsigned index, std::vector<Gpu>& gpus) const {
    NvmlDevice device = nullptr;
    if (const int result = nvml_.handle(index, &device); result != kNvmlSuccess) {
      Gpu& gpu = gpus.emplace_back();
      gpu.index = static_cast<int>(gpus.size()) - 1;
      gpu.trouble = nvml_.error_string(result);
      return;
    }
    const bool can_be_divided = nvml_.mig_mode && nvml_.most_instances && nvml_.instance;
    unsigned mode = 0;
    unsigned pending = 0;
    unsigned most = 0;
    if (!can_be_divided || nvml_.mig_mode(device, &mode, &pending) != kNvmlSuccess ||
        mode != kMigEnabled || nvml_.most_instances(device, &most) != kNvmlSuccess) {
      gpus.push_back(LookAt(device, device, static_cast<int>(gpus.size())));
      return;
    }
    for (unsigned i = 0; i < most; ++i) {
      NvmlDevice instance = nullptr;
      if (nvml_.instance(device, i, &instance) != kNvmlSuccess) continue;  // there is none
      gpus.push_back(LookAt(instance, device, static_cast<int>(gpus.size())));
    }
  }

  // `whole` is the GPU that the device is, or is an instance of.
  Gpu LookAt(NvmlDevice device, NvmlDevice whole, int index) const {
    Gpu gpu;
    gpu.index = index;
    std::array<char, kNvmlTextBytes> text{};
    NvmlMemory memory{};
    const auto note = [&](int result) {
      if (result != kNvmlSuccess && gpu.trouble.empty()) gpu.trouble = nvml_.error_string(result);
      return result == kNvmlSuccess;
    };
    if (note(nvml_.name(device, text.data(), kNvmlTextBytes))) gpu.name = text.data();
    if (note(nvml_.uuid(device, text.data(), kNvmlTextBytes))) gpu.uuid = text.data();
    // GPUs that share the host's memory have none of their own to tell of.
    const int answered = nvml_.memory(device, &memory);
    if (answered != kNvmlNotSupported && note(answered)) {
      gpu.memory_bytes = static_cast<std::int64_t>(memory.total);
    }
    if (gpu.trouble.empty()) gpu.trouble = Wants(whole);
    gpu.near_cpus = NearCpus(whole);
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
  ESPALIER_RETURN_IF_ERROR(Held(nvml, result));
  nvml.shutdown();
  return std::make_unique<Nvml>(std::move(library), nvml);
}

absl::StatusOr<std::vector<Gpu>> FindGpus(const std::string& first_gpu) {
  ESPALIER_ASSIGN_OR_RETURN(const std::unique_ptr<GpuDriver> driver, GpuDriver::Open());
  if (driver != nullptr) return driver->Look();
  if (access(first_gpu.c_str(), F_OK) == 0) {
    std::fprintf(stderr,
                 "tuner: there is %s, but the NVIDIA driver's %s is not found or not loaded: this "
                 "machine's GPUs are not used (is its folder in /etc/ld.so.conf.d or "
                 "LD_LIBRARY_PATH?)\n",
                 first_gpu.c_str(), LibraryName());
  }
  return std::vector<Gpu>{};
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

std::vector<int> CpusNear(const std::vector<const Gpu*>& gpus) {
  std::set<int> near;
  for (const Gpu* const gpu : gpus) {
    if (gpu->near_cpus.empty()) return {};
    near.insert(gpu->near_cpus.begin(), gpu->near_cpus.end());
  }
  return {near.begin(), near.end()};
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
