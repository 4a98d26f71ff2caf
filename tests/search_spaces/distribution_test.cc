#include "search_spaces/distribution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace espalier {
namespace {

constexpr int kDraws = 20000;

double DrawNumber(const Distribution& distribution, Random& random) {
  const ParameterValue value = Draw(distribution, random);
  EXPECT_TRUE(Contains(distribution, value)) << ToJson(value);
  return std::get<double>(value);
}

std::map<double, int> Counts(const Distribution& distribution) {
  Random random(3);
  std::map<double, int> counts;
  for (int i = 0; i < kDraws; ++i) ++counts[DrawNumber(distribution, random)];
  return counts;
}

TEST(Distribution, QUniformRoundsToMultiplesOfQThenClips) {
  const std::map<double, int> counts = Counts(QUniform{2, 10, 5});
  ASSERT_EQ(counts.size(), 3u);
  EXPECT_NEAR(counts.at(2), kDraws * 0.5 / 8, 300);
  EXPECT_NEAR(counts.at(5), kDraws * 5.0 / 8, 300);
  EXPECT_NEAR(counts.at(10), kDraws * 2.5 / 8, 300);
  EXPECT_EQ(Cardinality(Distribution(QUniform{2, 10, 5})), 3u);
}

TEST(Distribution, QUniformNumbersTheValuesThatItDraws) {
  for (const QUniform& d : {QUniform{2, 10, 5}, QUniform{0, 1, 0.3}, QUniform{0, 1, 0.35},
                            QUniform{-2.5, 12.5, 5}, QUniform{2.4, 2.6, 5}, QUniform{1, 2, 10}}) {
    SCOPED_TRACE(Describe(d));
    const std::map<double, int> counts = Counts(d);
    const std::uint64_t n = *Cardinality(d);
    ASSERT_EQ(n, counts.size());
    std::uint64_t i = 0;
    for (const auto& [value, count] : counts) {
      EXPECT_EQ(std::get<double>(ValueAt(d, i)), value);
      EXPECT_EQ(IndexOf(d, value), i);
      ++i;
    }
  }
}

TEST(Distribution, RandIntExcludesHigh) {
  const Distribution d = RandInt{-1, 2};
  Random random(1);
  std::map<std::int64_t, int> counts;
  for (int i = 0; i < 3000; ++i) ++counts[std::get<std::int64_t>(Draw(d, random))];
  ASSERT_EQ(counts.size(), 3u);
  EXPECT_EQ(counts.begin()->first, -1);
  EXPECT_NEAR(counts[0], 1000, 120);
  EXPECT_FALSE(Contains(d, ParameterValue(std::int64_t{2})));
}

TEST(Distribution, LogUniformIsEvenInTheLogarithm) {
  Random random(5);
  int below = 0;
  for (int i = 0; i < kDraws; ++i) below += DrawNumber(LogUniform{1e-4, 1}, random) < 1e-2 ? 1 : 0;
  EXPECT_NEAR(below, kDraws / 2.0, 300);
}

TEST(Distribution, BellsHaveTheirMeanAndSpread) {
  Random random(5);
  double sum = 0;
  double square = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = DrawNumber(Normal{3, 2}, random);
    sum += x / kDraws;
    square += (x - 3) * (x - 3) / kDraws;
  }
  EXPECT_NEAR(sum, 3, 0.06);
  EXPECT_NEAR(square, 4, 0.2);
  int below = 0;
  for (int i = 0; i < kDraws; ++i) {
    below += DrawNumber(LogNormal{1, 2}, random) < std::exp(1.0) ? 1 : 0;
  }
  EXPECT_NEAR(below, kDraws / 2.0, 300);
}

TEST(Distribution, RoundedBellsAreNotClipped) {
  const std::map<double, int> bell = Counts(QNormal{0, 1, 2});
  EXPECT_TRUE(bell.count(-2) > 0 && bell.count(2) > 0);
  EXPECT_GT(Counts(QLogNormal{0, 1, 4}).count(0), 0u);
  EXPECT_FALSE(Cardinality(Distribution(QNormal{0, 1, 2})).has_value());
}

TEST(Distribution, QLogUniformDrawsItsMultiples) {
  for (const auto& [value, count] : Counts(QLogUniform{1, 9, 4})) {
    EXPECT_TRUE(value == 1 || value == 4 || value == 8) << value;
  }
}

TEST(Distribution, ContainsTakesWrittenMultiplesAndRefusesOthers) {
  const Distribution d = QUniform{0, 1, 0.1};
  EXPECT_TRUE(Contains(d, ParameterValue(0.3)));
  EXPECT_TRUE(Contains(d, ParameterValue(std::int64_t{1})));
  EXPECT_FALSE(Contains(d, ParameterValue(0.35)));
  EXPECT_FALSE(Contains(d, ParameterValue(std::nan(""))));
  EXPECT_FALSE(Contains(d, ParameterValue(std::string("0.3"))));
}

}  // namespace
}  // namespace espalier
