#include "tests/trial_runner/kernels/host_launch.h"

#include <array>

#include "trial_runner/kernels/gradient_launches.h"

namespace espalier {

absl::Status LaunchOnHost(const GradientSums& sums, int /*device*/) {
  ForEachGradientLaunch(sums, [](const GradientLaunch& launch) {
    for (std::int32_t block = 0; block < launch.blocks; ++block) {
      std::array<GradientBlockSums, kGradientThreads> shared;
      for (int t = 0; t < kGradientThreads; ++t) {
        shared[static_cast<std::size_t>(t)] = SumOfThread(launch, block, t);
      }
      if (launch.partials == nullptr) continue;
      for (std::size_t half = kGradientThreads / 2; half > 0; half /= 2) {
        for (std::size_t t = 0; t < half; ++t) AddTo(shared[t], shared[t + half]);
      }
      StorePartial(launch, block, shared[0]);
    }
    return true;
  });
  const GradientTotals totals = TotalsOf(sums);
  for (std::int32_t block = 0; block < sums.wanted; ++block) {
    std::array<double, kGradientThreads> shared;
    for (int t = 0; t < kGradientThreads; ++t) {
      shared[static_cast<std::size_t>(t)] = TotalOfThread(totals, block, t);
    }
    for (std::size_t half = kGradientThreads / 2; half > 0; half /= 2) {
      for (std::size_t t = 0; t < half; ++t) shared[t] += shared[t + half];
    }
    StoreTotal(totals, block, shared[0]);
  }
  return absl::OkStatus();
}

}  // namespace espalier
