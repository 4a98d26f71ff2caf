#pragma once

#include "trial_runner/kernels/gradient_sums.h"

namespace espalier {

// Both are of the CUDA part, and compiled by nvcc. They work on the thread's current device, and
// return what CUDA says of a failure, or null.

// Whether the kernels can run on the device.
const char* CudaGradientSumsFailure();

// Begins the sums in `stream` (a cudaStream_t), and does not wait.
const char* BeginCudaGradientSums(const GradientSums& sums, void* stream);

}  // namespace espalier
