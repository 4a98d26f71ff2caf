#pragma once

#include "absl/status/statusor.h"
#include "trial_runner/kernels/gradient_kernel.h"

namespace espalier {

// See CudaLibrary.
absl::StatusOr<GradientKernel> CudaGradientKernel(int device);

}  // namespace espalier
