// Run with cuda_calls.cc loaded before it: what it counts, and that calls reach the library.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>

struct Extent {
  unsigned x, y, z;
};

extern "C" {
int cudaGetDeviceCount(int*);
int cudaGetDevice(int*);
int cudaSetDevice(int);
int cudaLaunchKernel(const void*, Extent, Extent, void**, std::size_t, void*);
int cudaLaunchKernelExC(const void*, const void*, void**);
int cudaStreamSynchronize(void*);
int cudaEventSynchronize(void*);
int cudaMemcpy(void*, const void*, std::size_t, int);
int cudaMemcpyAsync(void*, const void*, std::size_t, int, void*);
}

namespace {

TEST(CudaCalls, AreCountedAndReachTheLibrary) {
  const auto calls =
      reinterpret_cast<void (*)(unsigned long long*)>(dlsym(RTLD_DEFAULT, "CudaCalls"));
  ASSERT_NE(calls, nullptr) << "the counter is not loaded";
  EXPECT_EQ(cudaLaunchKernel(nullptr, {7, 1, 1}, {1, 1, 1}, nullptr, 0, nullptr), 7);
  EXPECT_EQ(cudaLaunchKernelExC(nullptr, nullptr, nullptr), 12);
  EXPECT_EQ(cudaStreamSynchronize(nullptr), 14);
  EXPECT_EQ(cudaEventSynchronize(nullptr), 15);
  EXPECT_EQ(cudaMemcpy(nullptr, nullptr, 0, 2), 2);
  EXPECT_EQ(cudaMemcpyAsync(nullptr, nullptr, 9, 0, nullptr), 9);
  std::array<unsigned long long, 3> counts{};
  calls(counts.data());
  EXPECT_EQ(counts, (std::array<unsigned long long, 3>{2, 3, 1}));
}

TEST(CudaCalls, ThoseThatInitialiseTheDriverAreCounted) {
  const auto calls =
      reinterpret_cast<unsigned long long (*)()>(dlsym(RTLD_DEFAULT, "CudaDeviceCalls"));
  ASSERT_NE(calls, nullptr) << "the counter is not loaded";
  EXPECT_EQ(calls(), 0U);
  EXPECT_EQ(cudaGetDeviceCount(nullptr), 8);
  EXPECT_EQ(cudaGetDevice(nullptr), 9);
  EXPECT_EQ(cudaSetDevice(3), 3);
  EXPECT_EQ(calls(), 3U);
}

}  // namespace
