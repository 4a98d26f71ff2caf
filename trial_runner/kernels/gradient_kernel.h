#pragma once

#include "absl/status/status.h"
#include "trial_runner/kernels/gradient_sums.h"

namespace espalier {

// Begins the sums on GPU `device`, behind what its current stream has to do, and returns without
// waiting. The memory that `sums` names is the device's, and is used in that order; `sums` itself
// is not used after the return.
using GradientKernel = absl::Status (*)(const GradientSums& sums, int device);

}  // namespace espalier
