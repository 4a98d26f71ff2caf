#include "tuner/core/samplers/tpe/parzen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace espalier::samplers {
namespace {

const Distribution kLine = Uniform{0, 1};
const Distribution kSteps = RandInt{0, 7};
const Distribution kNames =
    Choice{{ParameterValue(std::string("a")), ParameterValue(std::string("b"))}};

// The density of kernels at these points.
ParzenEstimator DensityOf(const std::vector<const Axis*>& axes, const std::vector<Point>& points,
                          std::vector<double> weights, const ParzenSettings& settings = {}) {
  ParzenEstimator density(axes, std::move(weights), settings);
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    std::vector<KernelPlace> places;
    std::vector<std::uint32_t> options;
    for (std::uint32_t k = 0; k < points.size(); ++k) {
      places.push_back({.at = points[k][axis].at, .kernel = k});
      options.push_back(static_cast<std::uint32_t>(points[k][axis].cell));
    }
    if (axes[axis]->unordered()) {
      density.PutOptions(axis, options);
    } else {
      std::stable_sort(places.begin(), places.end(),
                       [](const KernelPlace& a, const KernelPlace& b) { return a.at < b.at; });
      density.Put(axis, places);
    }
  }
  return density;
}

double LogDensityAt(const ParzenEstimator& density, const Point& point) {
  return density.LogDensities(std::vector<Point>{point})[0];
}

class ParzenTest : public ::testing::TestWithParam<ParzenSettings> {};
INSTANTIATE_TEST_SUITE_P(Settings, ParzenTest,
                         ::testing::Values(ParzenSettings{},
                                           ParzenSettings{.prior_weight = 0.2, .endpoints = true},
                                           ParzenSettings{.prior_weight = 0},
                                           ParzenSettings{.shared = true},
                                           ParzenSettings{.magic_clip = false}));

TEST_P(ParzenTest, DensityAddsUpToOne) {
  const Axis line(kLine);
  const Axis steps(kSteps);
  const Axis names(kNames);
  const std::vector<Point> points = {{{0.01, 0}, steps.PlaceAt(0.9), {0, 1}},
                                     {{0.4, 0}, steps.PlaceAt(0.2), {0, 0}},
                                     {{0.98, 0}, steps.PlaceAt(0.3), {0, 1}}};
  const ParzenEstimator density =
      DensityOf({&line, &steps, &names}, points, {1, 0.5, 0.2}, GetParam());
  constexpr int kParts = 1000;
  std::vector<Point> grid;
  for (int i = 0; i < kParts; ++i) {
    for (int step = 0; step < 7; ++step) {
      for (std::uint64_t name = 0; name < 2; ++name) {
        grid.push_back({{(i + 0.5) / kParts, 0}, steps.PlaceAt((step + 0.5) / 7), {0, name}});
      }
    }
  }
  double sum = 0;
  for (const double log_density : density.LogDensities(grid)) sum += std::exp(log_density) / kParts;
  EXPECT_NEAR(sum, 1, 1e-4);
}

TEST_P(ParzenTest, SamplesFollowTheDensity) {
  const Axis steps(kSteps);
  const ParzenEstimator density =
      DensityOf({&steps}, {{steps.PlaceAt(0.1)}, {steps.PlaceAt(0.95)}}, {1, 3}, GetParam());
  constexpr int kDraws = 20000;
  std::vector<int> counts(7);
  Random random(8);
  for (int i = 0; i < kDraws; ++i) ++counts[density.Sample(random)[0].cell];
  for (std::uint64_t cell = 0; cell < counts.size(); ++cell) {
    const double expected = std::exp(LogDensityAt(density, {{steps.cell(cell).Middle(), cell}}));
    EXPECT_NEAR(counts[cell], kDraws * expected, 4 * std::sqrt(kDraws * expected) + 1) << cell;
  }
}

TEST(Parzen, AnEstimateOfNothingIsThePrior) {
  const Axis line(kLine);
  const Axis names(kNames);
  const ParzenEstimator density = DensityOf({&line, &names}, {}, {});
  // The bell around the middle, cut to the interval, of which this is the mass.
  const double peak = 1 / std::sqrt(2 * M_PI) / 0.38292492254802624;
  EXPECT_NEAR(LogDensityAt(density, {{0.5, 0}, {0, 1}}), std::log(peak / 2), 1e-12);
}

// The sum goes over kernels some at a time, and passes over what is far below the largest.
TEST(Parzen, AddsUpManyKernels) {
  const Axis line(kLine);
  std::vector<Point> points;
  std::vector<double> weights;
  for (int k = 0; k < 1001; ++k) {
    points.push_back({{(k * 389 % 1001) / 1001.0, 0}});
    weights.push_back(1 + k % 3);
  }
  const ParzenEstimator density = DensityOf({&line}, points, weights);
  double sum = 1;
  double total = 0;
  for (const double weight : weights) sum += weight;
  const auto bell = [](double x, double at, double width) {
    const double mass =
        0.5 * (std::erf((1 - at) / width / std::sqrt(2.0)) + std::erf(at / width / std::sqrt(2.0)));
    return std::exp(-0.5 * std::pow((x - at) / width, 2)) / (width * std::sqrt(2 * M_PI) * mass);
  };
  constexpr double kAt = 0.123;
  for (std::size_t k = 0; k < points.size(); ++k) {
    total += weights[k] / sum * bell(kAt, points[k][0].at, 0.01);
  }
  total += 1 / sum * bell(kAt, 0.5, 1);
  EXPECT_NEAR(LogDensityAt(density, {{kAt, 0}}), std::log(total), 1e-12);
}

TEST(Axis, TakesNumbersInOrderAsOrdered) {
  const Distribution sizes = Choice{
      {ParameterValue(std::int64_t{32}), ParameterValue(std::int64_t{64}), ParameterValue(96.5)}};
  EXPECT_FALSE(Axis(sizes).unordered());
  EXPECT_TRUE(Axis(sizes, /*order_numbers=*/false).unordered());
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

// Each value's place lies in its cell, and cells leave no gap.
TEST(Axis, ItsCellsCoverTheInterval) {
  for (const Distribution& distribution :
       {Distribution(RandInt{-3, 40}), Distribution(QUniform{2, 10, 5}),
        Distribution(QUniform{0, 1, 0.1}), Distribution(QLogUniform{1, 300, 1}),
        Distribution(QLogUniform{0.001, 7, 0.5})}) {
    SCOPED_TRACE(Describe(distribution));
    const Axis axis(distribution);
    double end = 0;
    for (std::uint64_t i = 0; i < axis.count(); ++i) {
      const UnitCell cell = axis.cell(i);
      EXPECT_DOUBLE_EQ(cell.low, end);
      end = cell.high;
      const Coordinate place = axis.Place(ValueAt(distribution, i));
      EXPECT_EQ(place.cell, i);
      EXPECT_GE(place.at, cell.low);
      EXPECT_LE(place.at, cell.high);
      EXPECT_EQ(axis.PlaceAt(cell.Middle()).cell, i);
    }
    EXPECT_EQ(end, 1);
  }
}

}  // namespace
}  // namespace espalier::samplers
