#include "trial_runner/elastic/noise_scale.h"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "trial_runner/elastic/scaling_rules.h"

namespace espalier {
namespace {

using Gradient = std::array<double, 4>;
constexpr Gradient kTrue{1.0, -0.5, 0.25, 2.0};  // squared norm 5.3125
constexpr double kDeviation = 1.5;               // trace 4 * 2.25 = 9

Gradient MeanOfSamples(std::int64_t samples, Random& random) {
  Gradient g{};
  for (std::size_t i = 0; i < g.size(); ++i) {
    g[i] = kTrue[i] + kDeviation / std::sqrt(static_cast<double>(samples)) * random.Normal();
  }
  return g;
}

double Dot(const Gradient& a, const Gradient& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

NoiseObservation Observe(const std::vector<std::int64_t>& sizes, Random& random) {
  NoiseObservation seen;
  Gradient total{};
  for (const std::int64_t b : sizes) seen.samples += static_cast<double>(b);
  for (const std::int64_t b : sizes) {
    const Gradient g = MeanOfSamples(b, random);
    seen.local_sqr_mean += Dot(g, g) / static_cast<double>(sizes.size());
    seen.inverse_mean += 1.0 / static_cast<double>(b) / static_cast<double>(sizes.size());
    for (std::size_t i = 0; i < g.size(); ++i) {
      total[i] += g[i] * static_cast<double>(b) / seen.samples;
    }
  }
  seen.total_sqr = Dot(total, total);
  return seen;
}

TEST(EstimateNoise, IsUnbiasedForUnequalMicrobatches) {
  Random random(11);
  for (const auto& sizes : {std::vector<std::int64_t>{8, 8, 8, 8},
                            std::vector<std::int64_t>{3, 17, 9}, std::vector<std::int64_t>{1, 2}}) {
    double sqr = 0;
    double trace = 0;
    constexpr int kDraws = 200000;
    for (int i = 0; i < kDraws; ++i) {
      const auto estimate = EstimateNoise(Observe(sizes, random));
      ASSERT_TRUE(estimate);
      sqr += estimate->sqr / kDraws;
      trace += estimate->trace / kDraws;
    }
    EXPECT_NEAR(sqr, 5.3125, 0.08) << sizes.size();
    EXPECT_NEAR(trace, 9.0, 0.3) << sizes.size();
  }
}

// The textbook form for n equal microbatches, which the general one must reduce to.
TEST(EstimateNoise, EqualsTheTextbookFormForEqualMicrobatches) {
  const double local = 7.0;
  const double total = 3.0;
  const double n = 4;
  const double b = 16;
  const auto estimate = EstimateNoise({local, 1 / b, total, n * b});
  ASSERT_TRUE(estimate);
  EXPECT_NEAR(estimate->sqr, (n * total - local) / (n - 1), 1e-12);
  EXPECT_NEAR(estimate->trace / b, (local - total) * n / (n - 1), 1e-12);
}

TEST(EstimateNoise, SaysNothingOfASingleMicrobatchOrOfInfinities) {
  EXPECT_FALSE(EstimateNoise({5.0, 1.0 / 32, 5.0, 32}));
  EXPECT_FALSE(EstimateNoise({std::numeric_limits<double>::infinity(), 0.5, 1.0, 4}));
  EXPECT_FALSE(EstimateNoise({std::nan(""), 0.5, 1.0, 4}));
  EXPECT_FALSE(EstimateNoise({}));
}

TEST(EstimateNoiseFromPrevious, IsUnbiasedWhileParametersStandStill) {
  Random random(3);
  Gradient previous = MeanOfSamples(8, random);
  double sqr = 0;
  double trace = 0;
  constexpr int kDraws = 200000;
  for (int i = 0; i < kDraws; ++i) {
    const Gradient g = MeanOfSamples(8, random);
    const auto estimate =
        EstimateNoiseFromPrevious(Dot(g, g), Dot(previous, previous), Dot(g, previous), 8);
    ASSERT_TRUE(estimate);
    sqr += estimate->sqr / kDraws;
    trace += estimate->trace / kDraws;
    previous = g;
  }
  EXPECT_NEAR(sqr, 5.3125, 0.08);
  EXPECT_NEAR(trace, 9.0, 0.3);
}

TEST(NoiseAverages, FirstEstimateCountsInFull) {
  NoiseAverages averages;
  EXPECT_TRUE(averages.empty());
  EXPECT_EQ(averages.Sqr(), 1.0);
  EXPECT_EQ(averages.Var(32), 0.0);
  averages.Add({.sqr = 4, .trace = 64}, 1, false);
  EXPECT_NEAR(averages.Sqr(), 4, 1e-12);
  EXPECT_NEAR(averages.Var(32), 2, 1e-12);
}

TEST(NoiseAverages, LargeStepFadesAsManySmallOnesDo) {
  NoiseAverages small({.sqr = 5, .trace = 50, .weight = 0.5, .biased = 0});
  NoiseAverages large = small;
  for (int i = 0; i < 10; ++i) small.Add({1, 1}, 1, false);
  large.Add({1, 1}, 10, false);
  EXPECT_NEAR(small.Sqr(), large.Sqr(), 1e-9);
}

TEST(NoiseAverages, FirstUnbiasedEstimateStartsAnew) {
  NoiseAverages averages;
  for (int i = 0; i < 100; ++i) averages.Add({100, 100}, 1, true);
  averages.Add({2, 6}, 1, false);
  EXPECT_NEAR(averages.Sqr(), 2, 1e-9);
  EXPECT_NEAR(averages.Var(1), 6, 1e-9);
}

TEST(NoiseAverages, NegativeAveragesAreFloored) {
  NoiseAverages averages;
  averages.Add({-3, -3}, 1, false);
  EXPECT_EQ(averages.Sqr(), 0.0);
  EXPECT_EQ(averages.Var(8), 1e-6);
}

TEST(Gain, GoesFromOneWithoutNoiseToTheScaleWithNoiseAlone) {
  EXPECT_NEAR(Gain(1, 0, 8), 1, 1e-12);
  EXPECT_NEAR(Gain(0, 1, 8), 8, 1e-12);
  EXPECT_NEAR(Gain(1, 1, 1), 1, 1e-12);
  EXPECT_EQ(Gain(0, 0, 8), 1);
}

TEST(ScalingRules, EachIsOneAtTheBaseBatchSizeOnceWarmedUp) {
  for (const ScalingRuleRow& row : ScalingRules()) {
    const auto rule = row.make("");
    ASSERT_TRUE(rule.ok()) << rule.status();
    EXPECT_NEAR((*rule)->Factor({.scale = 1, .sqr = 2, .var = 3, .progress = 1e9}), 1.0, 1e-12)
        << row.name;
  }
}

TEST(ScalingRules, FactorsAtFourTimesTheBase) {
  const ScalingContext context{.scale = 4, .sqr = 1, .var = 2};
  const auto factor = [&](const char* name) { return (*FindScalingRule(name))->Factor(context); };
  EXPECT_NEAR(factor("adascale"), 3.0 / 1.5, 1e-12);
  EXPECT_NEAR(factor("adamscale"), std::sqrt(2.0), 1e-12);
  EXPECT_NEAR(factor("linear"), 4, 1e-12);
  EXPECT_NEAR(factor("sqrt"), 2, 1e-12);
  EXPECT_NEAR(factor("none"), 1, 1e-12);
}

TEST(ScalingRules, LegwWarmsUpInProportionToTheBatch) {
  const auto rule = FindScalingRule("legw:2");
  ASSERT_TRUE(rule.ok()) << rule.status();
  // Two epochs of 100 steps at the base batch, so eight at four times that.
  ScalingContext context{.scale = 4, .base_batch_size = 10, .dataset_size = 1000};
  context.progress = 200;
  EXPECT_NEAR((*rule)->Factor(context), 2 * 0.25, 1e-12);
  context.progress = 800;
  EXPECT_NEAR((*rule)->Factor(context), 2, 1e-12);
  context.progress = 5000;
  EXPECT_NEAR((*rule)->Factor(context), 2, 1e-12);
}

TEST(ScalingRules, ArgumentsAreChecked) {
  for (const char* wrong : {"legw:soon", "legw:-1", "linear:3"}) {
    const auto rule = FindScalingRule(wrong);
    ASSERT_FALSE(rule.ok()) << wrong;
    EXPECT_NE(rule.status().message().find(std::string(wrong).substr(0, 4)), std::string::npos);
  }
}

TEST(ScalingRules, UnknownNameIsAnsweredWithTheKnownOnes) {
  const auto rule = FindScalingRule("cubic");
  ASSERT_FALSE(rule.ok());
  for (const ScalingRuleRow& known : ScalingRules()) {
    EXPECT_NE(rule.status().message().find(absl::string_view(known.name.data(), known.name.size())),
              absl::string_view::npos);
  }
}

}  // namespace
}  // namespace espalier
