#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"

namespace espalier {

// The device that this replica trains on: the first GPU that CUDA_VISIBLE_DEVICES names, with
// LibTorch held to the share of its memory that ESPALIER_GPU_MEMORY_SHARE gives (0 to 1), or the
// CPU: where the variable is not set, is empty or "-1", or this build has no CUDA. An error where a
// GPU is named and CUDA cannot use it: a trial is not to go on a hundred times slower unnoticed.
//
// To be called before LibTorch is asked for anything: it loads LibTorch's CUDA part.
absl::StatusOr<c10::Device> AssignedDevice();

// What LibTorch has allocated on the device for tensors; 0 for the CPU, where nobody counts it.
std::int64_t AllocatedBytes(c10::Device device);

// Measures what parts of a step take on the device, without waiting for it: on a GPU by events in
// its current stream, which are read when the GPU has passed them, a step or two later. One thread.
class StepTimer {
 public:
  enum class Part { kCompute, kSync };
  struct Times {
    double compute_s = 0;
    double sync_s = 0;
  };

  static std::unique_ptr<StepTimer> For(c10::Device device);
  virtual ~StepTimer() = default;

  // A part may begin and end several times in a step; its stretches are added up.
  virtual void Begin(Part part) = 0;
  virtual void End(Part part) = 0;
  // Ends the step. The times of the newest step that the device is through with, unless they have
  // been told before; on the CPU that is this step.
  virtual std::optional<Times> EndStep() = 0;
};

}  // namespace espalier
