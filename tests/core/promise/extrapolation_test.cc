#include "tuner/core/promise/extrapolation.h"

#include <cmath>

#include "base/random.h"
#include "gtest/gtest.h"

namespace espalier {
namespace {

std::vector<CurvePoint> PowerCurve(double end, double gain, double power, int steps) {
  std::vector<CurvePoint> points;
  for (int s = 1; s <= steps; ++s) {
    points.push_back({static_cast<double>(s), end + gain * std::pow(s, -power), 1});
  }
  return points;
}

TEST(CurveShapes, FallFromOneToZero) {
  for (const double last : {2.0, 81.0, 100000.0}) {
    CurveShapes shapes(1, last);
    const std::vector<double> first(shapes.At(1).begin(), shapes.At(1).end());
    const std::vector<double> middle(shapes.At(1 + last / 3).begin(),
                                     shapes.At(1 + last / 3).end());
    const std::vector<double> end(shapes.At(last).begin(), shapes.At(last).end());
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      EXPECT_NEAR(first[k], 1, 1e-9);
      EXPECT_GT(middle[k], -1e-9);
      EXPECT_LT(middle[k], 1);
      EXPECT_NEAR(end[k], 0, 1e-9);
    }
  }
}

TEST(Condense, KeepsTheMeanAndTheNewest) {
  std::vector<CurvePoint> points = PowerCurve(0, 1, 0.5, 1000);
  const std::vector<CurvePoint> few = Condense(points);
  EXPECT_LT(few.size(), 30u);
  EXPECT_LT(few.front().step, 2);
  EXPECT_GT(few.back().step, 900);
  double count = 0;
  for (const CurvePoint& point : few) count += point.count;
  EXPECT_EQ(count, 1000);
  points.resize(5);
  EXPECT_EQ(Condense(points).size(), 5u);
}

// Ten curves to half-time, none further: where they go on follows from how they bend.
TEST(Extrapolation, FindsTheEndOfSmoothCurves) {
  Random random(3);
  std::vector<std::vector<CurvePoint>> curves;
  std::vector<double> ends;
  for (int i = 0; i < 10; ++i) {
    const double end = random.Uniform(0.1, 0.4);
    const double gain = random.Uniform(0.4, 0.8);
    curves.push_back(PowerCurve(end, gain, 0.8, 40));
    ends.push_back(end + gain * std::pow(80, -0.8));
  }
  Extrapolation extrapolation(curves, 1, 80, 0.2);
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const Extrapolation::Ending ending = extrapolation.End(curves[i]);
    EXPECT_NEAR(ending.now, curves[i].back().cost, 0.01);
    EXPECT_NEAR(ending.end.mean, ends[i], 0.01);
    EXPECT_LT(std::abs(ending.end.mean - ends[i]), 3 * std::sqrt(ending.end.variance));
  }
}

TEST(Extrapolation, IsSurerTheFurtherACurveIs) {
  Random random(4);
  std::vector<std::vector<CurvePoint>> curves;
  for (int i = 0; i < 12; ++i) {
    curves.push_back(
        PowerCurve(random.Uniform(0.1, 0.4), random.Uniform(0.3, 0.9), 0.7, 6 * (i + 1)));
    for (CurvePoint& point : curves.back()) point.cost += 0.01 * random.Normal();
  }
  Extrapolation extrapolation(curves, 1, 80, 0.2);
  const std::vector<CurvePoint> whole = curves.back();
  double before = HUGE_VAL;
  for (const std::size_t points : {1u, 4u, 16u, 64u}) {
    const double variance = extrapolation.End(std::span(whole).first(points)).end.variance;
    EXPECT_LT(variance, before) << points;
    before = variance;
  }
  EXPECT_GT(extrapolation.Prior().variance, before);
}

TEST(Extrapolation, LearnsFromNothing) {
  Extrapolation extrapolation({}, 0, 10, 1);
  EXPECT_TRUE(std::isfinite(extrapolation.Prior().mean));
  const std::vector<CurvePoint> one = {{3, 0.5, 1}};
  EXPECT_GT(extrapolation.End(one).end.variance, 0);
}

}  // namespace
}  // namespace espalier
