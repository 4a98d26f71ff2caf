#pragma once

#include "trial_runner/kernels/gradient_kernel.h"

namespace espalier {

// A GradientKernel whose device is the host: the same launches, blocks, threads and phases as
// cuda_gradient_sums.cu has, by loops.
absl::Status LaunchOnHost(const GradientSums& sums, int device);

}  // namespace espalier
