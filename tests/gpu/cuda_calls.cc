// Counts the calls of CUDA's runtime library that start work or wait for it: to be loaded before a
// program by LD_PRELOAD, where no profiler is. CudaCalls() tells the counts so far, and
// CudaDeviceCalls() how often the library was asked for or about devices, which initialises the
// driver: a process that is forked afterwards cannot use CUDA. A program finds both with dlsym.
// Each call goes on to the real library.

#include <dlfcn.h>

#include <atomic>
#include <cstddef>

namespace {

enum Count { kLaunches, kWaits, kCopies, kCounts };

std::atomic<unsigned long long> counts[kCounts];
std::atomic<unsigned long long> device_calls;

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// As dim3 of CUDA's headers, which are not needed for this.
struct Extent {
  unsigned x, y, z;
};

constexpr int kNotReady = 600;  // cudaErrorNotReady

// This thread's newest looks.
struct Looks {
  void Note(const void* of, int result) {
    if (result != kNotReady) {
      at = nullptr;
    } else if (at != of) {
      at = of;
      times = 1;
    } else if (++times == 2) {
      ++counts[kWaits];
    }
  }
  const void* at = nullptr;  // what was not ready
  int times = 0;
};

thread_local Looks looked;

void Began(Count count) {
  looked.at = nullptr;
  ++counts[count];
}

}  // namespace

#define ESPALIER_EXPORT extern "C" __attribute__((visibility("default")))

// Launches, waits and copies that do not wait.
ESPALIER_EXPORT void CudaCalls(unsigned long long to[3]) {
  for (int i = 0; i < kCounts; ++i) to[i] = counts[i];
}

ESPALIER_EXPORT unsigned long long CudaDeviceCalls() { return device_calls; }

// NOLINTBEGIN(readability-identifier-naming): the names are those of CUDA's runtime library

ESPALIER_EXPORT int cudaGetDeviceCount(int* count) {
  ++device_calls;
  static const auto next = Next<int(int*)>("cudaGetDeviceCount");
  return next(count);
}

ESPALIER_EXPORT int cudaGetDevice(int* device) {
  ++device_calls;
  static const auto next = Next<int(int*)>("cudaGetDevice");
  return next(device);
}

ESPALIER_EXPORT int cudaSetDevice(int device) {
  ++device_calls;
  static const auto next = Next<int(int)>("cudaSetDevice");
  return next(device);
}

ESPALIER_EXPORT int cudaLaunchKernel(const void* kernel, Extent grid, Extent block,
                                     void** arguments, std::size_t shared_bytes, void* stream) {
  Began(kLaunches);
  static const auto next =
      Next<int(const void*, Extent, Extent, void**, std::size_t, void*)>("cudaLaunchKernel");
  return next(kernel, grid, block, arguments, shared_bytes, stream);
}

// What `kernel<<<...>>>` calls, as CUDA 13's compiler translates it: LibTorch's launches, and ours.
ESPALIER_EXPORT int __cudaLaunchKernel(  // NOLINT(bugprone-reserved-identifier)
    void* kernel, Extent grid, Extent block, void** arguments, std::size_t shared_bytes,
    void* stream) {
  Began(kLaunches);
  static const auto next =
      Next<int(void*, Extent, Extent, void**, std::size_t, void*)>("__cudaLaunchKernel");
  return next(kernel, grid, block, arguments, shared_bytes, stream);
}

ESPALIER_EXPORT int cudaLaunchKernelExC(const void* configuration, const void* kernel,
                                        void** arguments) {
  Began(kLaunches);
  static const auto next = Next<int(const void*, const void*, void**)>("cudaLaunchKernelExC");
  return next(configuration, kernel, arguments);
}

ESPALIER_EXPORT int cudaLaunchCooperativeKernel(const void* kernel, Extent grid, Extent block,
                                                void** arguments, std::size_t shared_bytes,
                                                void* stream) {
  Began(kLaunches);
  static const auto next = Next<int(const void*, Extent, Extent, void**, std::size_t, void*)>(
      "cudaLaunchCooperativeKernel");
  return next(kernel, grid, block, arguments, shared_bytes, stream);
}

ESPALIER_EXPORT int cudaGraphLaunch(void* graph, void* stream) {
  Began(kLaunches);
  static const auto next = Next<int(void*, void*)>("cudaGraphLaunch");
  return next(graph, stream);
}

ESPALIER_EXPORT int cudaStreamSynchronize(void* stream) {
  Began(kWaits);
  static const auto next = Next<int(void*)>("cudaStreamSynchronize");
  return next(stream);
}

// Who asks for the same event again and again, with nothing in between, waits for it. Once is a
// look: so LibTorch's allocator of pinned memory asks whether a copy is done.
ESPALIER_EXPORT int cudaEventQuery(void* event) {
  static const auto next = Next<int(void*)>("cudaEventQuery");
  const int result = next(event);
  looked.Note(event, result);
  return result;
}

ESPALIER_EXPORT int cudaStreamQuery(void* stream) {
  static const auto next = Next<int(void*)>("cudaStreamQuery");
  const int result = next(stream);
  looked.Note(stream, result);
  return result;
}

ESPALIER_EXPORT int cudaEventSynchronize(void* event) {
  Began(kWaits);
  static const auto next = Next<int(void*)>("cudaEventSynchronize");
  return next(event);
}

ESPALIER_EXPORT int cudaDeviceSynchronize() {
  Began(kWaits);
  static const auto next = Next<int()>("cudaDeviceSynchronize");
  return next();
}

ESPALIER_EXPORT int cudaMemcpy(void* to, const void* from, std::size_t bytes, int kind) {
  Began(kWaits);
  static const auto next = Next<int(void*, const void*, std::size_t, int)>("cudaMemcpy");
  return next(to, from, bytes, kind);
}

ESPALIER_EXPORT int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind,
                                    void* stream) {
  Began(kCopies);
  static const auto next =
      Next<int(void*, const void*, std::size_t, int, void*)>("cudaMemcpyAsync");
  return next(to, from, bytes, kind, stream);
}

// NOLINTEND(readability-identifier-naming)
