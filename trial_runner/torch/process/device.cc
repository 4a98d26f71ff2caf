#include "trial_runner/torch/process/device.h"

#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/environment.h"
#include "base/protocol.h"
#include "base/status.h"
#include "trial_runner/collectives/cuda/cuda_library.h"

namespace espalier {
namespace {

using Part = StepTimer::Part;
using Clock = std::chrono::steady_clock;

constexpr double kSecondsPerMillisecond = 1e-3;
constexpr std::int64_t kLeftToTraining_bytes = 1 << 30;

double& TimeOf(StepTimer::Times& times, Part part) {
  switch (part) {
    case Part::kCompute:
      return times.compute_s;
    case Part::kSync:
      return times.sync_s;
    case Part::kAccumulation:
      return times.accumulation_s;
    case Part::kLastMicrobatch:
      break;
  }
  return times.last_microbatch_s;
}

class CpuStepTimer final : public StepTimer {
 public:
  void Begin(Part part) override { began_[static_cast<std::size_t>(part)] = Clock::now(); }
  void End(Part part) override {
    const Clock::duration took = Clock::now() - began_[static_cast<std::size_t>(part)];
    TimeOf(times_, part) += std::chrono::duration<double>(took).count();
  }
  std::vector<Times> EndStep() override { return {std::exchange(times_, Times{})}; }
  void Reset() override { times_ = {}; }

 private:
  std::array<Clock::time_point, 4> began_;
  Times times_;
};

class GpuStepTimer final : public StepTimer {
 public:
  explicit GpuStepTimer(c10::Device device) : device_(device), backend_(device.type()) {}

  void Begin(Part part) override {
    step_.push_back({.part = part, .began = Record(), .ended = std::nullopt});
  }
  void End(Part part) override {
    for (auto stretch = step_.rbegin(); stretch != step_.rend(); ++stretch) {
      if (stretch->part != part || stretch->ended) continue;
      stretch->ended = Record();
      return;
    }
  }

  std::vector<Times> EndStep() override {
    steps_.push_back(std::exchange(step_, {}));
    std::vector<Times> passed;
    while (!steps_.empty() && IsPassed(steps_.front())) {
      passed.push_back(Sum(steps_.front()));
      for (Stretch& stretch : steps_.front()) {
        free_.push_back(std::move(stretch.began));
        if (stretch.ended) free_.push_back(*std::move(stretch.ended));
      }
      steps_.pop_front();
    }
    return passed;
  }

  void Reset() override {
    step_.clear();
    steps_.clear();
  }

 private:
  struct Stretch {
    Part part = Part::kCompute;
    c10::Event began;
    std::optional<c10::Event> ended;
  };
  using Step = std::vector<Stretch>;

  c10::Event Record() {
    if (free_.empty()) {
      free_.emplace_back(device_.type(), c10::EventFlag::BACKEND_DEFAULT);  // those that tell times
    }
    c10::Event event = std::move(free_.back());
    free_.pop_back();
    event.record(backend_.getStream(device_));
    return event;
  }

  static bool IsPassed(const Step& step) {
    for (const Stretch& stretch : step) {
      if (!stretch.began.query() || (stretch.ended && !stretch.ended->query())) return false;
    }
    return true;
  }

  static Times Sum(const Step& step) {
    Times times;
    for (const Stretch& stretch : step) {
      if (!stretch.ended) continue;
      const double took_ms = stretch.began.elapsedTime(*stretch.ended);
      TimeOf(times, stretch.part) += took_ms * kSecondsPerMillisecond;
    }
    return times;
  }

  const c10::Device device_;
  const c10::impl::VirtualGuardImpl backend_;
  Step step_;
  std::deque<Step> steps_;  // those that the device may not be through with
  std::vector<c10::Event> free_;
};

absl::StatusOr<double> MemoryShare() {
  const std::string text = EnvironmentVariable("ESPALIER_GPU_MEMORY_SHARE");
  double share = 1;
  if (!text.empty() && (!absl::SimpleAtod(text, &share) || !(share > 0 && share <= 1))) {
    return absl::InvalidArgumentError(
        absl::StrCat("environment variable ESPALIER_GPU_MEMORY_SHARE=\"", text,
                     "\": want a number above 0 and at most 1"));
  }
  return share;
}

absl::Status Prepare(const DeviceFacts& facts, double memory_share) {
  ESPALIER_ASSIGN_OR_RETURN(const CudaLibrary* const cuda, facts.load());
  const absl::StatusOr<int> devices = cuda->device_count();
  EndIfSlotIsAtFault(devices.status());
  ESPALIER_RETURN_IF_ERROR(devices.status());
  if (!facts.own.empty() && *devices > 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("CUDA had been initialised before, with the ", *devices, " GPUs of all slots ",
                     "that the trial holds: make the Trial before anything else uses CUDA"));
  }
  if (!facts.libtorch_has_cuda()) {
    return absl::FailedPreconditionError(
        "LibTorch had looked for CUDA before its CUDA part was loaded: make the Trial before "
        "anything else of LibTorch, at::manual_seed too");
  }
  return memory_share < 1 ? cuda->limit_memory(/*device=*/0, memory_share) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<c10::Device> AssignedDevice() {
  DeviceFacts facts{.visible = std::nullopt,
                    .in_slot = std::getenv("ESPALIER_CONTROL_FD") != nullptr,
                    // Without loading anything of CUDA's.
                    .has_driver = access("/dev/nvidiactl", F_OK) == 0,
                    .built_with_cuda = BuiltWithCuda() || !GpusFit().ok(),
                    .load = LoadCudaLibrary,
                    .libtorch_has_cuda = [] { return at::hasCUDA(); }};
  facts.own = EnvironmentVariable(kOwnGpuVariable);
  if (!facts.own.empty()) setenv("CUDA_VISIBLE_DEVICES", facts.own.c_str(), 1);
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) facts.visible = visible;
  return AssignedDevice(facts);
}

absl::StatusOr<c10::Device> AssignedDevice(const DeviceFacts& facts) {
  ESPALIER_ASSIGN_OR_RETURN(const double share, MemoryShare());
  // Agents set it for their replicas, but where they found no driver.
  const bool is_set = facts.visible || facts.in_slot;
  const std::string named = facts.visible.value_or("");
  const bool wanted = is_set ? !named.empty() && !named.starts_with("-") : facts.has_driver;
  if (wanted && !facts.built_with_cuda) {
    std::fprintf(stderr,
                 "espalier: there is a GPU, but this build is without CUDA: training on the CPU\n");
  }
  if (!wanted || !facts.built_with_cuda) return c10::Device(c10::kCPU);
  if (const absl::Status prepared = Prepare(facts, share); !prepared.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        is_set
            ? absl::StrCat("environment variable CUDA_VISIBLE_DEVICES=\"", named, "\" names a GPU")
            : "the machine has an NVIDIA driver",
        ", but ", std::string(prepared.message()),
        "; to train on the CPU, set CUDA_VISIBLE_DEVICES to \"\""));
  }
  return c10::Device(c10::kCUDA, 0);
}

void EndIfSlotIsAtFault(const absl::Status& devices) {
  if (devices.ok() || std::getenv("ESPALIER_CONTROL_FD") == nullptr) return;
  std::fprintf(stderr,
               "espalier: CUDA cannot be used with CUDA_VISIBLE_DEVICES=\"%s\": %s; this replica "
               "ends, so that the trial goes on elsewhere\n",
               EnvironmentVariable("CUDA_VISIBLE_DEVICES").c_str(),
               std::string(devices.message()).c_str());
  std::fflush(nullptr);
  _exit(kSlotAtFaultExitCode);
}

std::optional<std::string> MisplacedModel(const std::string& what, c10::Device placed,
                                          c10::Device assigned) {
  if (placed == assigned) return std::nullopt;
  return absl::StrCat(what, ": its parameters are on ", placed.str(), ", and this replica has ",
                      assigned.str(),
                      ": move the model there (to(trial.device())) before you make its optimizer, "
                      "and move each batch");
}

GradientKernel GradientKernelFor(c10::Device device) {
  if (!device.is_cuda() || EnvironmentVariable("ESPALIER_GRADIENT_KERNEL") == "off") return nullptr;
  const auto find = [device]() -> absl::StatusOr<GradientKernel> {
    ESPALIER_ASSIGN_OR_RETURN(const CudaLibrary* const cuda, LoadCudaLibrary());
    return cuda->gradient_kernel(device.index());
  };
  const absl::StatusOr<GradientKernel> kernel = find();
  if (kernel.ok()) return *kernel;
  std::fprintf(stderr, "espalier: gradients are measured by LibTorch's operations: %s\n",
               std::string(kernel.status().message()).c_str());
  return nullptr;
}

std::int64_t AllocatedBytes(c10::Device device) {
  if (device.is_cpu()) return 0;
  c10::DeviceAllocator* const allocator = c10::getDeviceAllocator(device.type());
  if (!allocator->initialized()) return 0;  // nothing was ever allocated
  // The first figure is the sum over LibTorch's pools of small and large blocks.
  return allocator->getDeviceStats(device.index()).allocated_bytes[0].current;
}

std::int64_t SpareBytes(c10::Device device) {
  if (device.is_cpu()) return 0;
  c10::DeviceAllocator* const allocator = c10::getDeviceAllocator(device.type());
  if (!allocator->initialized()) return 0;
  const auto [free, total] = allocator->getMemoryInfo(device.index());
  const double share = MemoryShare().value_or(1) * static_cast<double>(total);
  const std::int64_t held = allocator->getDeviceStats(device.index()).reserved_bytes[0].current;
  const auto left = std::min<std::int64_t>(static_cast<std::int64_t>(free),
                                           static_cast<std::int64_t>(share) - held);
  return std::max<std::int64_t>(0, (left - kLeftToTraining_bytes) / 2);
}

void EmptyCache(c10::Device device) {
  if (device.is_cpu()) return;
  c10::DeviceAllocator* const allocator = c10::getDeviceAllocator(device.type());
  if (allocator->initialized()) allocator->emptyCache();
}

std::unique_ptr<StepTimer> StepTimer::For(c10::Device device) {
  if (device.is_cpu()) return std::make_unique<CpuStepTimer>();
  return std::make_unique<GpuStepTimer>(device);
}

}  // namespace espalier
