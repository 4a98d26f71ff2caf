#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"

namespace espalier {

// The device that this replica trains on: the first GPU that CUDA_VISIBLE_DEVICES names, with
// LibTorch held to the share of its memory that ESPALIER_GPU_MEMORY_SHARE gives (0 to 1), or the
// CPU where the variable is not set, is empty or "-1", or this build has no CUDA. It is an error
// when a GPU is named and CUDA cannot use it: a trial must not go on a hundred times slower
// unnoticed.
//
// Call it before anything else of LibTorch: it loads LibTorch's CUDA part.
absl::StatusOr<c10::Device> AssignedDevice();

// How many bytes LibTorch has allocated on the device for tensors; 0 for the CPU, where they are
// not counted.
std::int64_t AllocatedBytes(c10::Device device);

// Gives the device back what LibTorch keeps of it for tensors to come. Nothing for the CPU.
void EmptyCache(c10::Device device);

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

  // A part may begin and end several times in a step; the times are added up.
  virtual void Begin(Part part) = 0;
  virtual void End(Part part) = 0;
  // Ends the step. Returns the times of the newest step that the device has completed, unless they
  // were returned before; on the CPU that is this step.
  virtual std::optional<Times> EndStep() = 0;
};

}  // namespace espalier
