// The launches of GradientSums on a GPU. What their threads do is in gradient_blocks.h, which the
// tests run on the host.

#include <cuda_runtime.h>

#include "trial_runner/kernels/cuda_gradient_sums.h"
#include "trial_runner/kernels/gradient_launches.h"

namespace espalier {
namespace {

__global__ void __launch_bounds__(kGradientThreads)
    SumGradients(const __grid_constant__ GradientLaunch launch) {
  __shared__ GradientBlockSums sums[kGradientThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const auto block = static_cast<std::int32_t>(blockIdx.x);
  const GradientBlockSums own = SumOfThread(launch, block, thread);
  if (launch.partials == nullptr) return;
  sums[thread] = own;
  for (int half = kGradientThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) AddTo(sums[thread], sums[thread + half]);
  }
  if (thread == 0) StorePartial(launch, block, sums[0]);
}

__global__ void __launch_bounds__(kGradientThreads)
    AddUpGradientSums(const __grid_constant__ GradientTotals totals) {
  __shared__ double sums[kGradientThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const auto block = static_cast<std::int32_t>(blockIdx.x);
  sums[thread] = TotalOfThread(totals, block, thread);
  for (int half = kGradientThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) sums[thread] += sums[thread + half];
  }
  if (thread == 0) StoreTotal(totals, block, sums[0]);
}

// The launch's own error, which is not left behind for others to find.
const char* LastFailure() {
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

}  // namespace

const char* CudaGradientSumsFailure() {
  cudaFuncAttributes attributes{};
  for (const void* kernel : {reinterpret_cast<const void*>(&SumGradients),
                             reinterpret_cast<const void*>(&AddUpGradientSums)}) {
    if (cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess) return LastFailure();
  }
  return nullptr;
}

const char* BeginCudaGradientSums(const GradientSums& sums, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  const char* failure = nullptr;
  ForEachGradientLaunch(sums, [&](const GradientLaunch& launch) {
    SumGradients<<<static_cast<unsigned>(launch.blocks), kGradientThreads, 0, on>>>(launch);
    failure = LastFailure();
    return failure == nullptr;
  });
  if (failure != nullptr || sums.wanted == 0) return failure;
  AddUpGradientSums<<<static_cast<unsigned>(sums.wanted), kGradientThreads, 0, on>>>(
      TotalsOf(sums));
  return LastFailure();
}

}  // namespace espalier
