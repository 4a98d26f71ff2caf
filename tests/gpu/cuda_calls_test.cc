// Run with cuda_calls.cc loaded before it: what it counts, and that calls reach the library.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>

struct Extent {
  unsigned x, y, z;
};

extern "C" {
// NOLINTBEGIN(readability-identifier-naming): the names are those of CUDA's runtime library
int cudaGetDeviceCount(int*);
int cudaGetDevice(int*);
int cudaSetDevice(int);
int cudaLaunchKernel(const void*, Extent, Extent, void**, std::size_t, void*);
int __cudaLaunchKernel(void*, Extent, Extent, void**, std::size_t, void*);  // NOLINT
int cudaLaunchKernelExC(const void*, const void*, void**);
int cudaLaunchCooperativeKernel(const void*, Extent, Extent, void**, std::size_t, void*);
int cudaStreamSynchronize(void*);
int cudaEventQuery(void*);
int cudaStreamQuery(void*);
int cudaEventSynchronize(void*);
int cudaMemcpy(void*, const void*, std::size_t, int);
int cudaMemcpyAsync(void*, const void*, std::size_t, int, void*);
// NOLINTEND(readability-identifier-naming)
}

namespace {

std::array<unsigned long long, 3> Counts() {
  std::array<unsigned long long, 3> counts{};
  const auto calls =
      reinterpret_cast<void (*)(unsigned long long*)>(dlsym(RTLD_DEFAULT, "CudaCalls"));
  if (calls == nullptr) {
    ADD_FAILURE() << "the counter is not loaded";
  } else {
    calls(counts.data());
  }
  return counts;
}

TEST(CudaCalls, AreCountedAndReachTheLibrary) {
  const auto before = Counts();
  EXPECT_EQ(cudaLaunchKernel(nullptr, {7, 1, 1}, {1, 1, 1}, nullptr, 0, nullptr), 7);
  EXPECT_EQ(__cudaLaunchKernel(nullptr, {1, 1, 1}, {6, 1, 1}, nullptr, 0, nullptr), 6);
  EXPECT_EQ(cudaLaunchKernelExC(nullptr, nullptr, nullptr), 12);
  EXPECT_EQ(cudaLaunchCooperativeKernel(nullptr, {}, {}, nullptr, 17, nullptr), 17);
  EXPECT_EQ(cudaStreamSynchronize(nullptr), 14);
  EXPECT_EQ(cudaEventSynchronize(nullptr), 15);
  EXPECT_EQ(cudaMemcpy(nullptr, nullptr, 0, 2), 2);
  EXPECT_EQ(cudaMemcpyAsync(nullptr, nullptr, 9, 0, nullptr), 9);
  const auto after = Counts();
  EXPECT_EQ(after[0] - before[0], 4U);
  EXPECT_EQ(after[1] - before[1], 3U);
  EXPECT_EQ(after[2] - before[2], 1U);
}

TEST(CudaCalls, AskingAgainAndAgainIsAWait) {
  const auto waits = [] { return Counts()[1]; };
  const auto before = waits();
  int soon = 1;
  EXPECT_EQ(cudaEventQuery(&soon), 600);  // a look
  EXPECT_EQ(cudaEventQuery(&soon), 0);
  EXPECT_EQ(waits() - before, 0U);
  int later = 5;
  while (cudaEventQuery(&later) != 0) continue;
  EXPECT_EQ(waits() - before, 1U);
  // Two looks with a copy in between, as at each allocation of pinned memory.
  int meanwhile = 5;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(cudaEventQuery(&meanwhile), 600);
    cudaMemcpyAsync(nullptr, nullptr, 9, 0, nullptr);
  }
  EXPECT_EQ(waits() - before, 1U);
  EXPECT_EQ(cudaStreamQuery(nullptr), 600);
  EXPECT_EQ(cudaStreamQuery(nullptr), 600);
  EXPECT_EQ(waits() - before, 2U);
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
