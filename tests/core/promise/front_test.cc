#include "tuner/core/promise/front.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "gtest/gtest.h"
#include "tuner/core/fronts/fronts.h"

namespace espalier {
namespace {

// How often each trial is on the front in so many draws of all ends.
std::vector<double> Counted(const CostsByObjective& costs, int draws, std::uint64_t seed) {
  Random random(seed);
  const std::size_t trials = costs.front().size();
  std::vector<double> counts(trials, 0.0);
  std::vector<std::vector<double>> ends(trials, std::vector<double>(costs.size()));
  for (int d = 0; d < draws; ++d) {
    for (std::size_t i = 0; i < trials; ++i) {
      for (std::size_t k = 0; k < costs.size(); ++k) {
        ends[i][k] = costs[k][i].mean + std::sqrt(costs[k][i].variance) * random.Normal();
      }
    }
    for (std::size_t i = 0; i < trials; ++i) {
      const auto dominates = [&](const auto& other) { return Dominates(other, ends[i]); };
      if (std::ranges::none_of(ends, dominates)) counts[i] += 1.0 / draws;
    }
  }
  return counts;
}

CostsByObjective RandomCosts(std::size_t objectives, std::size_t trials, Random& random) {
  CostsByObjective costs(objectives);
  for (auto& of : costs) {
    for (std::size_t i = 0; i < trials; ++i) {
      const double deviation = i % 3 == 0 ? 0 : random.Uniform(0.05, 1.5);
      of.push_back({random.Normal(), deviation * deviation});
    }
  }
  return costs;
}

TEST(FrontProbability, IsWhatManyDrawsCount) {
  Random random(3);
  for (const std::size_t objectives : {2U, 3U}) {
    for (const std::size_t trials : {2U, 5U, 12U, 30U}) {
      const CostsByObjective costs = RandomCosts(objectives, trials, random);
      const std::vector<double> told = FrontProbability(costs);
      const std::vector<double> counted = Counted(costs, 4000, 17);
      for (std::size_t i = 0; i < trials; ++i) {
        EXPECT_NEAR(told[i], counted[i], 0.06) << objectives << " " << trials << " trial " << i;
      }
    }
  }
}

TEST(FrontProbability, CertainTrialsAreOnTheFrontOrNot) {
  //                          front      front      behind 1   equal to 1
  const CostsByObjective costs{{{1, 0}, {2, 0}, {2.5, 0}, {2, 0}},
                               {{2, 0}, {1, 0}, {1, 0}, {1, 0}}};
  EXPECT_EQ(FrontProbability(costs), (std::vector<double>{1, 1, 0, 1}));
}

TEST(FrontProbability, OneLeaderInOneObjectiveIsKept) {
  // Far behind in the first, far ahead in the second.
  const CostsByObjective costs{{{0, 0.01}, {0.1, 0.01}, {9, 0.01}},
                               {{5, 0.01}, {6, 0.01}, {0, 0.01}}};
  const std::vector<double> told = FrontProbability(costs);
  EXPECT_GT(told[2], 0.999);
  EXPECT_LT(told[1], 0.3);
}

TEST(FrontProbability, ScalesDoNotMatter) {
  Random random(5);
  CostsByObjective costs = RandomCosts(2, 20, random);
  const std::vector<double> before = FrontProbability(costs);
  for (Forecast& f : costs[1]) f = {1e6 * f.mean - 3e8, 1e12 * f.variance};
  const std::vector<double> after = FrontProbability(costs);
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(before[i], after[i], 1e-6);
}

TEST(FrontProbability, TakesHundredsOfTrials) {
  Random random(7);
  const CostsByObjective costs = RandomCosts(2, 600, random);
  const std::vector<double> told = FrontProbability(costs);
  ASSERT_EQ(told.size(), 600u);
  const std::vector<double> counted = Counted(costs, 60, 1);
  double apart = 0;
  for (std::size_t i = 0; i < told.size(); ++i) apart += std::abs(told[i] - counted[i]) / 600;
  EXPECT_LT(apart, 0.02);
}

TEST(FrontProbability, OfNothingIsNothing) {
  EXPECT_TRUE(FrontProbability({}).empty());
  EXPECT_TRUE(FrontProbability({{}, {}}).empty());
}

}  // namespace
}  // namespace espalier
