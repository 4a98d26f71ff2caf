#pragma once

#include <functional>

#include "absl/status/status.h"
#include "trial_runner/collectives/cuda/staged_operation.h"

namespace espalier {

// What collectives of device memory ask of the device beside NCCL: the seam to LibTorch's CUDA
// part. One thread.
class DeviceStaging {
 public:
  // Waits until the function returns true. An error if the group is given up or the limit is
  // reached.
  using Patience = std::function<absl::Status(const std::function<bool()>& done)>;

  virtual ~DeviceStaging() = default;

  // Runs it with the device as the calling thread's current one. What LibTorch throws meanwhile
  // becomes an error.
  virtual absl::Status OnDevice(const std::function<absl::Status()>& body) = 0;

  // Operations that go through the host's memory, those on host memory among them: begun in the
  // order of the calls, and each after what the calling thread's current stream holds.
  virtual void Start(const StagedOperation& operation) = 0;
  virtual absl::Status WaitAll(const Patience& patience) = 0;
  // Forgets what was begun, which may still use its buffers.
  virtual void Clear() = 0;
};

}  // namespace espalier
