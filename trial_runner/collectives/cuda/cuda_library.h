#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trial_runner/collectives/collectives.h"
#include "trial_runner/kernels/gradient_kernel.h"

namespace espalier {

// How device memory goes to other members: always through the host's, or by NCCL where it can.
enum class DeviceTransport { kThroughHost, kNccl };

// What needs CUDA: a shared library of its own, loaded only where a GPU is to be used. Linked into
// every program, LibTorch's CUDA part would cost a process that has no GPU 230 MB and 0.1 s of its
// start (torch 2.11, 2026-11).
struct CudaLibrary {
  // Collectives for the memory of GPU `options.device` (none: kHost), and over `host` for the rest.
  absl::StatusOr<std::unique_ptr<Collectives>> (*make_collectives)(
      std::unique_ptr<Collectives> host, const CollectivesOptions& options,
      DeviceTransport transport);
  // Bounds what LibTorch allocates on the GPU to a share (0 to 1) of its memory.
  absl::Status (*limit_memory)(int device, double share);
  // How many GPUs this process sees. An error says why CUDA cannot be asked.
  absl::StatusOr<int> (*device_count)();
  // Our kernel for the gradients on the GPU, in LibTorch's current stream. An error says why it
  // cannot run there.
  absl::StatusOr<GradientKernel> (*gradient_kernel)(int device);
};

// Whether this build has the library. Where it has none, Load says so.
bool BuiltWithCuda();

// Whether GPUs can be used with that release of torch, or with the one that this is compiled for:
// those before 2.11 have another CUDA than the library, which no GPU can be used without.
absl::Status GpusFit(int torch_major, int torch_minor);
absl::Status GpusFit();

// Loads the library, once per process; LibTorch knows CUDA from then on. Call it before LibTorch is
// asked for anything but CPU tensors: LibTorch does not look again for what it once found missing.
absl::StatusOr<const CudaLibrary*> LoadCudaLibrary();

}  // namespace espalier
