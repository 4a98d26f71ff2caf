#include "tuner/core/estimates/equal_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/core/core_fixture.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

// Values v(progress) = 1 / progress, reported each step at these progresses.
std::vector<IntermediateValue> Reported(const std::vector<double>& progresses) {
  std::vector<IntermediateValue> values;
  for (const double progress : progresses) {
    values.push_back({std::ssize(values) + 1, 1 / progress, progress, Time{}, 0});
  }
  return values;
}

Trial TrialWith(std::int64_t id, std::vector<IntermediateValue> values) {
  Trial trial;
  trial.id = TrialId(id);
  trial.state = TrialState::kRunning;
  trial.values = std::move(values);
  return trial;
}

TEST(EqualProgress, AnUndisturbedCurveIsItself) {
  const auto values = Reported({100, 200, 300});
  const auto points = AtEqualProgress(values, false, 100);
  ASSERT_EQ(points.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(points[i].step, values[i].step);
    EXPECT_EQ(points[i].value, values[i].value) << "to the last bit";
  }
}

TEST(EqualProgress, ALargerBatchMakesLessProgressInAStep) {
  // Steps 1 to 4 at half the progress: its step 2 is where others have step 1.
  const auto points = AtEqualProgress(Reported({50, 100, 150, 200}), false, 100);
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].step, 1);
  EXPECT_EQ(points[0].value, 0.01);
  EXPECT_EQ(points[1].step, 2);
  EXPECT_EQ(points[1].value, 0.005);
}

TEST(EqualProgress, InterpolatesBetweenReportsAndNotBeforeTheFirst) {
  const auto points = AtEqualProgress(Reported({80, 160, 240}), false, 100);
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].step, 1);
  EXPECT_DOUBLE_EQ(points[0].value, 1.0 / 80 + 0.25 * (1.0 / 160 - 1.0 / 80));
  EXPECT_EQ(points[0].progress, 100);
  EXPECT_EQ(points[1].step, 2);
  EXPECT_DOUBLE_EQ(points[1].value, 1.0 / 160 + 0.5 * (1.0 / 240 - 1.0 / 160));
  EXPECT_TRUE(AtEqualProgress(Reported({250}), false, 100).empty());
}

TEST(EqualProgress, RareReportsFillTheStepsBetween) {
  const auto points = AtEqualProgress(Reported({100, 400}), false, 100);
  ASSERT_EQ(points.size(), 4u);
  EXPECT_EQ(points[2].step, 3);
  EXPECT_DOUBLE_EQ(points[2].value, 0.01 + 2.0 / 3 * (0.0025 - 0.01));
}

TEST(EqualProgress, TheLastValueOfAnEndedTrialAndNaNDoNotWait) {
  auto values = Reported({80, 160});
  EXPECT_EQ(AtEqualProgress(values, false, 100).size(), 1u);
  const auto ended = AtEqualProgress(values, true, 100);
  ASSERT_EQ(ended.size(), 2u);
  EXPECT_EQ(ended[1].step, 2);
  EXPECT_EQ(ended[1].value, values[1].value);
  values.back().value = std::nan("");
  const auto broken = AtEqualProgress(values, false, 100);
  EXPECT_TRUE(std::isnan(broken.back().value));
  EXPECT_EQ(broken.back().step, 2);
  const auto on_the_spot = AtEqualProgress(Reported({100, 200}), true, 100);
  EXPECT_EQ(on_the_spot.size(), 2u) << "nothing is added where it stands already";
}

TEST(EqualProgress, ProgressThatGoesBackIsLeftOut) {
  const auto points = AtEqualProgress(Reported({100, 90, 200}), false, 100);
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[1].value, 0.005);
}

TEST(EqualProgress, WithoutProgressCurvesAreLeftAlone) {
  std::vector<IntermediateValue> values = {{1, 0.5, 0, Time{}, 0}, {2, 0.4, 0, Time{}, 0}};
  EXPECT_EQ(AtEqualProgress(values, true, 100), values);
  EqualProgress curves;
  const Trial plain = TrialWith(1, values);
  curves.Take(plain);
  const auto points = curves.Points(plain, /*ended=*/false);
  EXPECT_EQ(std::vector(points.begin(), points.end()), values);
}

TEST(EqualProgress, TheUnitIsTheMostAnyTrialMakesInAStep) {
  EqualProgress curves;
  const Trial large = TrialWith(1, Reported({50, 100, 150}));
  curves.Take(large);
  EXPECT_EQ(curves.Points(large, /*ended=*/false).size(), 3u) << "nobody is known to make more";
  const Trial base = TrialWith(2, Reported({100}));
  curves.Take(base);
  EXPECT_EQ(curves.Points(large, /*ended=*/false).size(), 1u);
  EXPECT_EQ(curves.Points(base, /*ended=*/false).size(), 1u);
}

TEST(EqualProgress, OtherMetricsAreComparedThereToo) {
  EqualProgress curves;
  const Trial base = TrialWith(1, Reported({100}));
  curves.Take(base);
  Trial trial = TrialWith(2, Reported({50, 100, 150, 200}));
  trial.other_curves.edit() = {trial.values, {trial.values[1], trial.values[3]}};
  curves.Take(trial);
  const auto others = curves.Others(trial, /*ended=*/false);
  ASSERT_EQ(others.size(), 2u);
  EXPECT_EQ(others[0], AtEqualProgress(trial.values, false, 100));
  EXPECT_EQ(others[1], others[0]) << "what is told in each second step is told at each multiple";
}

TEST(EqualProgress, CountsWhatTheNewestValueAdds) {
  EqualProgress curves;
  const Trial base = TrialWith(1, Reported({100}));
  curves.Take(base);
  Trial trial = TrialWith(2, Reported({80, 160}));
  curves.Take(trial);
  EXPECT_EQ(curves.PointsOfFirst(trial, 1).size(), 0u);
  EXPECT_EQ(curves.Points(trial, /*ended=*/false).size(), 1u);
  trial = TrialWith(2, Reported({80, 160, 190}));
  curves.Take(trial);
  EXPECT_EQ(curves.PointsOfFirst(trial, 2).size(), 1u);
  EXPECT_EQ(curves.Points(trial, /*ended=*/false).size(), 1u)
      << "the newest has not come to the next";
}

// Two trials on two slots; the second's batch has grown, so that a step is worth half as much.
class EqualProgressTest : public CoreTest {
 protected:
  void Start(BatchMode mode) {
    StudySpec spec = Spec(2);
    spec.batch_mode = mode;
    spec.pruner = {"asha", {{"eta", 2}}};
    Step(CreateStudy{spec, false});
    Join(2);
    base_ = starts_.at(0).replica;
    large_ = starts_.at(1).replica;
    Step(FromReplica{base_, ReplicaReport{1, 0.5, 100}});
    Step(FromReplica{large_, ReplicaReport{1, 0.8, 50}});
  }

  ReplicaId base_, large_;
};

TEST_F(EqualProgressTest, InFixedModeTrialsAreComparedStepByStep) {
  Start(BatchMode::kFixed);
  EXPECT_EQ(trial(2).state, TrialState::kPruned);
}

TEST_F(EqualProgressTest, InAdaptiveModeTrialsAreComparedAtEqualProgress) {
  Start(BatchMode::kAdaptive);
  EXPECT_EQ(trial(2).state, TrialState::kRunning) << "it is not as far as the other";
  Step(FromReplica{large_, ReplicaReport{2, 0.4, 100}});
  EXPECT_EQ(trial(2).state, TrialState::kRunning) << "0.4 against 0.5 at the same progress";
  EXPECT_GT(core_.Activity(TrialId(2)).promise, core_.Activity(TrialId(1)).promise);
}

TEST_F(EqualProgressTest, ARungIsReachedAtItsProgress) {
  Start(BatchMode::kAdaptive);
  Step(FromReplica{large_, ReplicaReport{2, 0.6, 100}});
  EXPECT_EQ(trial(2).state, TrialState::kPruned) << "0.6 against 0.5 at the same progress";
  EXPECT_THAT(trial(2).reason, HasSubstr("0.6 at step 1 is not among the best"));
  EXPECT_THAT(trial(2).reason, HasSubstr("steps at equal progress"));
}

TEST_F(EqualProgressTest, AValueThatIsNotANumberEndsATrialAtOnce) {
  Start(BatchMode::kAdaptive);
  Step(FromReplica{large_, ReplicaReport{2, std::nan(""), 75}});
  EXPECT_EQ(trial(2).state, TrialState::kPruned);
}

}  // namespace
}  // namespace espalier
