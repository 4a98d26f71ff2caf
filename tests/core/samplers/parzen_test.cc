#include "tuner/core/samplers/parzen.h"

#include <gtest/gtest.h>

#include <cmath>

namespace espalier::samplers {
namespace {

const Distribution kLine = Uniform{0, 1};
const Distribution kSteps = RandInt{0, 7};
const Distribution kNames =
    Choice{{ParameterValue(std::string("a")), ParameterValue(std::string("b"))}};

class ParzenTest : public ::testing::TestWithParam<Bandwidth> {};
INSTANTIATE_TEST_SUITE_P(Bandwidths, ParzenTest,
                         ::testing::Values(Bandwidth::kShared, Bandwidth::kNeighbors));

TEST_P(ParzenTest, DensityAddsUpToOne) {
  const Axis line(kLine);
  const Axis steps(kSteps);
  const Axis names(kNames);
  const std::vector<Point> points = {{{0.01, 0}, steps.PlaceAt(0.9), {0, 1}},
                                     {{0.4, 0}, steps.PlaceAt(0.2), {0, 0}},
                                     {{0.98, 0}, steps.PlaceAt(0.3), {0, 1}}};
  const ParzenEstimator density({&line, &steps, &names}, points, {1, 0.5, 0.2}, GetParam());
  double sum = 0;
  constexpr int kParts = 2000;
  for (int i = 0; i < kParts; ++i) {
    for (int step = 0; step < 7; ++step) {
      for (std::size_t name = 0; name < 2; ++name) {
        sum += std::exp(density.LogDensity(
                   {{(i + 0.5) / kParts, 0}, steps.PlaceAt((step + 0.5) / 7), {0, name}})) /
               kParts;
      }
    }
  }
  EXPECT_NEAR(sum, 1, 1e-4);
}

TEST_P(ParzenTest, SamplesFollowTheDensity) {
  const Axis steps(kSteps);
  const ParzenEstimator density({&steps}, {{steps.PlaceAt(0.1)}, {steps.PlaceAt(0.95)}}, {1, 3},
                                GetParam());
  constexpr int kDraws = 20000;
  std::vector<int> counts(7);
  Random random(8);
  for (int i = 0; i < kDraws; ++i) ++counts[density.Sample(random)[0].cell];
  for (std::size_t cell = 0; cell < counts.size(); ++cell) {
    const double expected = std::exp(density.LogDensity({{steps.cell(cell).Middle(), cell}}));
    EXPECT_NEAR(counts[cell], kDraws * expected, 4 * std::sqrt(kDraws * expected)) << cell;
  }
}

TEST(Axis, TakesNumbersInOrderAsOrdered) {
  const Distribution sizes = Choice{
      {ParameterValue(std::int64_t{32}), ParameterValue(std::int64_t{64}), ParameterValue(96.5)}};
  EXPECT_FALSE(Axis(sizes).unordered());
  const Distribution mixed = Choice{
      {ParameterValue(std::int64_t{32}), ParameterValue(std::int64_t{4}), ParameterValue(96.5)}};
  EXPECT_TRUE(Axis(mixed).unordered());
  EXPECT_TRUE(Axis(kNames).unordered());
}

TEST(Axis, PlacesEndsInTheOuterCells) {
  const Axis steps(kSteps);
  EXPECT_EQ(steps.PlaceAt(0).cell, 0u);
  EXPECT_EQ(steps.PlaceAt(1).cell, 6u);
  EXPECT_EQ(steps.ValueOf(steps.PlaceAt(0.5)), ParameterValue(std::int64_t{3}));
}

}  // namespace
}  // namespace espalier::samplers
