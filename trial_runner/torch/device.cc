#include "trial_runner/torch/device.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "trial_runner/collectives/cuda_library.h"
#include "tuner/base/status.h"

namespace espalier {
namespace {

using Part = StepTimer::Part;
using Clock = std::chrono::steady_clock;

constexpr double kSecondsPerMillisecond = 1e-3;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

double& TimeOf(StepTimer::Times& times, Part part) {
  return part == Part::kCompute ? times.compute_s : times.sync_s;
}

class CpuStepTimer final : public StepTimer {
 public:
  void Begin(Part part) override { began_[static_cast<std::size_t>(part)] = Clock::now(); }
  void End(Part part) override {
    const Clock::duration took = Clock::now() - began_[static_cast<std::size_t>(part)];
    TimeOf(times_, part) += std::chrono::duration<double>(took).count();
  }
  std::optional<Times> EndStep() override { return std::exchange(times_, Times{}); }

 private:
  std::array<Clock::time_point, 2> began_;
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

  std::optional<Times> EndStep() override {
    steps_.push_back(std::exchange(step_, {}));
    std::optional<Times> newest;
    while (!steps_.empty() && IsPassed(steps_.front())) {
      newest = Sum(steps_.front());
      steps_.pop_front();
    }
    return newest;
  }

 private:
  struct Stretch {
    Part part = Part::kCompute;
    c10::Event began;
    std::optional<c10::Event> ended;
  };
  using Step = std::vector<Stretch>;

  c10::Event Record() const {
    c10::Event event(device_.type(), c10::EventFlag::BACKEND_DEFAULT);  // those that tell times
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
};

absl::StatusOr<double> MemoryShare() {
  const std::string text = Variable("ESPALIER_GPU_MEMORY_SHARE");
  double share = 1;
  if (!text.empty() && (!absl::SimpleAtod(text, &share) || !(share > 0 && share <= 1))) {
    return absl::InvalidArgumentError(
        absl::StrCat("environment variable ESPALIER_GPU_MEMORY_SHARE=\"", text,
                     "\": want a number above 0 and at most 1"));
  }
  return share;
}

absl::Status Prepare(double memory_share) {
  ESPALIER_ASSIGN_OR_RETURN(const CudaLibrary* const cuda, LoadCudaLibrary());
  ESPALIER_RETURN_IF_ERROR(cuda->device_count().status());
  return memory_share < 1 ? cuda->limit_memory(/*device=*/0, memory_share) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<c10::Device> AssignedDevice() {
  ESPALIER_ASSIGN_OR_RETURN(const double share, MemoryShare());
  const std::string named = Variable("CUDA_VISIBLE_DEVICES");
  if (named.empty() || named.starts_with("-") || !BuiltWithCuda()) return c10::Device(c10::kCPU);
  if (const absl::Status prepared = Prepare(share); !prepared.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("environment variable CUDA_VISIBLE_DEVICES=\"", named, "\" names a GPU, but ",
                     std::string(prepared.message()), "; to train on the CPU, set it to \"\""));
  }
  return c10::Device(c10::kCUDA, 0);
}

std::int64_t AllocatedBytes(c10::Device device) {
  if (device.is_cpu()) return 0;
  // The first figure is the sum over LibTorch's pools of small and large blocks.
  return c10::getDeviceAllocator(device.type())
      ->getDeviceStats(device.index())
      .allocated_bytes[0]
      .current;
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
