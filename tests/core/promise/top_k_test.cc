#include "tuner/core/promise/top_k.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "gtest/gtest.h"

namespace espalier {
namespace {

TEST(TopKProbability, OfTwoNormalsIsTheClosedForm) {
  const std::vector<Forecast> costs = {{0.0, 1.0}, {1.0, 0.25}};
  const std::vector<double> p = TopKProbability(costs, 1);
  const double expected = 0.5 * std::erfc(-(1.0 / std::sqrt(1.25)) / std::sqrt(2.0));
  EXPECT_NEAR(p[0], expected, 0.01);
  EXPECT_NEAR(p[1], 1 - expected, 0.01);
}

TEST(TopKProbability, OfCertainCostsIsTheirRank) {
  const std::vector<Forecast> costs = {{3, 0}, {1, 0}, {2, 0}, {1, 0}};
  EXPECT_EQ(TopKProbability(costs, 1), (std::vector<double>{0, 1, 0, 0}));
  EXPECT_EQ(TopKProbability(costs, 2), (std::vector<double>{0, 1, 0, 1}));
  EXPECT_EQ(TopKProbability(costs, 3), (std::vector<double>{0, 1, 1, 1}));
  EXPECT_EQ(TopKProbability(costs, 9), (std::vector<double>{1, 1, 1, 1}));
}

TEST(TopKProbability, OfEqualsIsShared) {
  const std::vector<Forecast> costs(10, {0.5, 0.1});
  for (const double p : TopKProbability(costs, 3)) EXPECT_NEAR(p, 0.3, 0.01);
}

TEST(TopKProbability, AgreesWithSampling) {
  Random random(3);
  for (const int k : {1, 2, 5}) {
    std::vector<Forecast> costs;
    for (int i = 0; i < 12; ++i) {
      const double deviation = random.Below(4) == 0 ? 0 : random.Uniform(0.05, 2);
      costs.push_back({random.Uniform(-1, 1), deviation * deviation});
    }
    constexpr int kDraws = 20000;
    std::vector<double> counted(costs.size(), 0);
    for (int draw = 0; draw < kDraws; ++draw) {
      std::vector<std::pair<double, std::size_t>> drawn;
      for (std::size_t i = 0; i < costs.size(); ++i) {
        drawn.emplace_back(costs[i].mean + std::sqrt(costs[i].variance) * random.Normal(), i);
      }
      std::sort(drawn.begin(), drawn.end());
      for (int r = 0; r < k; ++r) counted[drawn[static_cast<std::size_t>(r)].second] += 1;
    }
    const std::vector<double> p = TopKProbability(costs, k);
    for (std::size_t i = 0; i < costs.size(); ++i) EXPECT_NEAR(p[i], counted[i] / kDraws, 0.02);
    EXPECT_NEAR(std::accumulate(p.begin(), p.end(), 0.0), k, 0.02);
  }
}

TEST(TopKProbability, SumsToKWithThousandsOfContenders) {
  Random random(4);
  std::vector<Forecast> costs;
  for (int i = 0; i < 3000; ++i) costs.push_back({random.Normal(), i % 3 == 0 ? 0.0 : 0.3});
  const std::vector<double> p = TopKProbability(costs, 4);
  EXPECT_NEAR(std::accumulate(p.begin(), p.end(), 0.0), 4, 0.08);
}

}  // namespace
}  // namespace espalier
