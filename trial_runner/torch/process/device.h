#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "trial_runner/collectives/cuda/cuda_library.h"
#include "trial_runner/kernels/gradient_kernel.h"

namespace espalier {

// The device that this replica trains on: the first GPU that CUDA_VISIBLE_DEVICES names or, for a
// program that is started by hand where the variable is not set, that the machine has, with
// LibTorch held to the share of its memory that ESPALIER_GPU_MEMORY_SHARE gives (0 to 1). The CPU
// where the variable is empty or "-1", the machine has no NVIDIA driver, or this build has no CUDA.
// It is an error when there is a GPU to be used and CUDA cannot use it, or torch has another CUDA
// (GpusFit): a trial must not go on a hundred times slower unnoticed.
//
// A process that sees the GPUs of several slots (ESPALIER_OWN_GPU) sees only that of its own from
// here on, as all that it starts later. It is an error where CUDA was initialised before: it goes
// on seeing them all.
//
// Call it before anything else of LibTorch: it loads LibTorch's CUDA part.
absl::StatusOr<c10::Device> AssignedDevice();

// What it goes by beside the share of memory, so that tests need no GPU.
struct DeviceFacts {
  std::optional<std::string> visible;  // CUDA_VISIBLE_DEVICES; none: it is not set
  std::string own{};  // the GPU to which the process is to be limited; empty: all that are visible
  bool in_slot = false;          // an agent has started this process
  bool has_driver = false;       // an NVIDIA driver is loaded
  bool built_with_cuda = false;  // or refuses GPUs, which Load says
  absl::StatusOr<const CudaLibrary*> (*load)() = nullptr;
  bool (*libtorch_has_cuda)() = nullptr;  // asked once that is loaded
};
absl::StatusOr<c10::Device> AssignedDevice(const DeviceFacts& facts);

// Ends a replica in an agent's slot (ESPALIER_CONTROL_FD) with kSlotAtFaultExitCode where CUDA
// tells no devices there: its trial is to be tried in another one. Does nothing to a program that
// was started by hand, and none where there are devices.
void EndIfSlotIsAtFault(const absl::Status& devices);

// What to tell people of a model that is not where its replica trains; nothing if it is. `what`
// names the model, `placed` is where its parameters are.
std::optional<std::string> MisplacedModel(const std::string& what, c10::Device placed,
                                          c10::Device assigned);

// Our kernel for gradients on the device. Null, so that LibTorch's operations are used: on the CPU,
// where ESPALIER_GRADIENT_KERNEL is "off", and, which is said on standard error, where CUDA cannot
// run it.
GradientKernel GradientKernelFor(c10::Device device);

// How many bytes LibTorch has allocated on the device for tensors; 0 for the CPU, where they are
// not counted.
std::int64_t AllocatedBytes(c10::Device device);

// How many bytes of the device may be taken for a copy of what is there, so that training can still
// grow: half of what LibTorch could take of it beyond what it holds, less 1 GiB; 0 for the CPU.
std::int64_t SpareBytes(c10::Device device);

// Gives the device back what LibTorch keeps of it for tensors to come. Nothing for the CPU.
void EmptyCache(c10::Device device);

// Measures what parts of a step take on the device, without waiting for it: on a GPU by events in
// its current stream, which are read when the GPU has passed them, a step or two later. One thread.
class StepTimer {
 public:
  // The latter two are the whole of a microbatch, and overlap with the former.
  enum class Part { kCompute, kSync, kAccumulation, kLastMicrobatch };
  struct Times {
    double compute_s = 0;
    double sync_s = 0;
    double accumulation_s = 0;
    double last_microbatch_s = 0;
  };

  static std::unique_ptr<StepTimer> For(c10::Device device);
  virtual ~StepTimer() = default;

  // A part may begin and end several times in a step; the times are added up.
  virtual void Begin(Part part) = 0;
  virtual void End(Part part) = 0;
  // Ends the step. Returns the times of the steps that the device has completed, in their order,
  // each once; on the CPU that is this step.
  virtual std::vector<Times> EndStep() = 0;
  // Forgets the step under way, and those of which nothing was returned yet.
  virtual void Reset() = 0;
};

}  // namespace espalier
