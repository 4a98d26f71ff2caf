#include "trial_runner/collectives/cuda/cuda_gradient_kernel.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "absl/strings/str_cat.h"
#include "trial_runner/kernels/cuda_gradient_sums.h"

namespace espalier {
namespace {

absl::Status Begin(const GradientSums& sums, int device) {
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device));
  const auto stream = c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device));
  const char* failure = BeginCudaGradientSums(sums, stream.stream());
  if (failure == nullptr) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("CUDA: the kernel for gradients: ", failure));
}

}  // namespace

absl::StatusOr<GradientKernel> CudaGradientKernel(int device) {
  try {
    const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device));
    if (const char* failure = CudaGradientSumsFailure()) {
      return absl::UnavailableError(absl::StrCat("CUDA: ", failure));
    }
  } catch (const std::exception& e) {
    const std::string message = e.what();  // goes on with a stack
    return absl::UnavailableError(absl::StrCat("CUDA: ", message.substr(0, message.find('\n'))));
  }
  return Begin;
}

}  // namespace espalier
