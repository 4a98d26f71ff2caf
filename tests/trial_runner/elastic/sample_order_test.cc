#include "trial_runner/elastic/sample_order.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "trial_runner/elastic/step_schedule.h"

namespace espalier {
namespace {

// The promise of the loader, for any sequence of groups and any batch sizes.
TEST(SampleOrder, EachSampleExactlyOnceAnEpochWhateverTheGroups) {
  Random random(5);
  SampleOrder order(997, 42);
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
    std::multiset<std::int64_t> seen;
    std::int64_t cursor = 0;
    while (cursor < order.size()) {
      const int replicas = static_cast<int>(random.Below(9)) + 1;
      const auto batch = static_cast<std::int64_t>(random.Below(100)) + 1;
      const auto max_atomic = static_cast<std::int64_t>(random.Below(30)) + 1;
      std::int64_t samples = 0;
      for (int rank = 0; rank < replicas; ++rank) {
        const StepPlan plan = PlanStep(cursor, order.size(), batch, rank, replicas, max_atomic);
        samples = plan.samples;
        for (const SampleSlice& m : plan.microbatches) {
          EXPECT_LE(m.size, max_atomic);
          const auto indices = order.Slice(epoch, m);
          seen.insert(indices.begin(), indices.end());
        }
      }
      cursor += samples;
    }
    ASSERT_EQ(seen.size(), 997u);
    EXPECT_EQ(std::set<std::int64_t>(seen.begin(), seen.end()).size(), 997u);
    EXPECT_EQ(*seen.begin(), 0);
    EXPECT_EQ(*seen.rbegin(), 996);
  }
}

TEST(SampleOrder, DependsOnSeedAndEpochAlone) {
  const auto first_ten = [](std::uint64_t seed, std::int64_t epoch) {
    SampleOrder order(100, seed);
    const auto slice = order.Slice(epoch, {0, 10});
    return std::vector<std::int64_t>(slice.begin(), slice.end());
  };
  EXPECT_EQ(first_ten(1, 3), first_ten(1, 3));
  EXPECT_NE(first_ten(1, 3), first_ten(1, 4));
  EXPECT_NE(first_ten(1, 3), first_ten(2, 3));
}

std::vector<std::int64_t> WholeEpoch(std::int64_t size, std::uint64_t seed, std::int64_t epoch) {
  SampleOrder order(size, seed);
  const auto slice = order.Slice(epoch, {0, size});
  return {slice.begin(), slice.end()};
}

TEST(SampleOrder, IsAPermutationOfAnySize) {
  for (const std::int64_t size : {1, 2, 3, 31, 4095, 4096, 4097, 8191, 8193, 100'003}) {
    std::vector<std::int64_t> samples = WholeEpoch(size, 9, 1);
    std::ranges::sort(samples);
    for (std::int64_t i = 0; i < size; ++i) {
      ASSERT_EQ(samples[static_cast<std::size_t>(i)], i) << "of " << size;
    }
  }
}

TEST(SampleOrder, CutsTheSameFromAnEpochOfBillions) {
  SampleOrder order(5'000'000'000, 3);
  const auto cut = [&order](std::int64_t begin, std::int64_t size) {
    const auto slice = order.Slice(7, {begin, size});
    return std::vector<std::int64_t>(slice.begin(), slice.end());
  };
  const auto both = cut(4'999'999'000, 1000);
  EXPECT_TRUE(std::ranges::equal(std::span(both).first(300), cut(4'999'999'000, 300)));
  EXPECT_TRUE(std::ranges::equal(std::span(both).last(700), cut(4'999'999'300, 700)));
  EXPECT_EQ(std::set<std::int64_t>(both.begin(), both.end()).size(), 1000u);
  EXPECT_GT(std::ranges::max(both), 4'900'000'000);
}

// Pearson's statistic of as many counts as there are, which are expected to be equal, in standard
// deviations from its mean.
double DeviationFromEqual(const std::vector<double>& counts) {
  double sum = 0;
  for (const double count : counts) sum += count;
  const double expected = sum / static_cast<double>(counts.size());
  double statistic = 0;
  for (const double count : counts) statistic += (count - expected) * (count - expected) / expected;
  const double freedom = static_cast<double>(counts.size()) - 1;
  return (statistic - freedom) / std::sqrt(2 * freedom);
}

TEST(SampleOrder, AllPermutationsOfFewSamplesAreEquallyLikely) {
  std::map<std::vector<std::int64_t>, double> seen;
  for (std::int64_t epoch = 0; epoch < 36'000; ++epoch) ++seen[WholeEpoch(5, 11, epoch)];
  ASSERT_EQ(seen.size(), 120u);
  std::vector<double> counts;
  for (const auto& [permutation, count] : seen) counts.push_back(count);
  EXPECT_LT(std::abs(DeviationFromEqual(counts)), 4);
}

// Where a sample comes, which follows which by how much, and how both change from epoch to epoch.
TEST(SampleOrder, LooksLikeAShuffle) {
  constexpr std::int64_t kSize = 60'000;
  constexpr std::int64_t kParts = 20;
  std::vector<double> places(kParts * kParts);
  std::vector<double> steps(2 * kParts);
  std::vector<double> changes(2 * kParts);
  std::int64_t neighbours = 0;
  const auto part = [](std::int64_t difference) {
    return static_cast<std::size_t>((difference + kSize) % kSize * 2 * kParts / kSize);
  };
  for (std::int64_t epoch = 0; epoch < 10; ++epoch) {
    const auto samples = WholeEpoch(kSize, 4, epoch);
    const auto before = WholeEpoch(kSize, 4, epoch + 10);
    for (std::size_t i = 0; i + 1 < samples.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      ++places[static_cast<std::size_t>(at * kParts / kSize * kParts +
                                        samples[i] * kParts / kSize)];
      ++steps[part(samples[i + 1] - samples[i])];
      ++changes[part(samples[i] - before[i])];
      neighbours += std::abs(samples[i + 1] - samples[i]) == 1 ? 1 : 0;
    }
  }
  EXPECT_LT(std::abs(DeviationFromEqual(places)), 4);
  EXPECT_LT(std::abs(DeviationFromEqual(steps)), 4);
  EXPECT_LT(std::abs(DeviationFromEqual(changes)), 4);
  EXPECT_NEAR(static_cast<double>(neighbours), 20, 18) << "2 an epoch, as of a Poisson process";
}

}  // namespace
}  // namespace espalier
