// Stands for CUDA's runtime library where cuda_calls.cc is tested: each function answers with a
// number of its own.

#include <cstddef>

struct Extent {
  unsigned x, y, z;
};

extern "C" {
// NOLINTBEGIN(readability-identifier-naming): the names are those of CUDA's runtime library
int cudaGetDeviceCount(int*) { return 8; }
int cudaGetDevice(int*) { return 9; }
int cudaSetDevice(int device) { return device; }
int cudaLaunchKernel(const void*, Extent grid, Extent, void**, std::size_t, void*) {
  return static_cast<int>(grid.x);
}
int __cudaLaunchKernel(void*, Extent, Extent block, void**, std::size_t, void*) {  // NOLINT
  return static_cast<int>(block.x);
}
int cudaLaunchKernelExC(const void*, const void*, void**) { return 12; }
int cudaLaunchCooperativeKernel(const void*, Extent, Extent, void**, std::size_t bytes, void*) {
  return static_cast<int>(bytes);
}
int cudaGraphLaunch(void*, void*) { return 13; }
int cudaStreamSynchronize(void*) { return 14; }
int cudaEventSynchronize(void*) { return 15; }
int cudaDeviceSynchronize() { return 16; }
// The event says how often it is not ready.
int cudaEventQuery(void* event) { return (*static_cast<int*>(event))-- > 0 ? 600 : 0; }
int cudaStreamQuery(void*) { return 600; }
int cudaMemcpy(void*, const void*, std::size_t, int kind) { return kind; }
int cudaMemcpyAsync(void*, const void*, std::size_t bytes, int, void*) {
  return static_cast<int>(bytes);
}
// NOLINTEND(readability-identifier-naming)
}
