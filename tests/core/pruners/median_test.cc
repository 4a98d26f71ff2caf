#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/pruners/curves.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

PruneVerdict JudgeMedian(const Options& options, const Curves& others,
                         const std::vector<double>& values,
                         Direction direction = Direction::kMinimize) {
  const auto pruner = MakePruner("median", options);
  EXPECT_TRUE(pruner.ok()) << pruner.status();
  Curves mine;
  mine.Add(values, false);
  return (*pruner)->Judge({direction, mine.all().front(), others.all()});
}

Curves Five() {
  Curves others;
  for (const double end : {0.1, 0.2, 0.3, 0.4, 0.5}) others.Complete({1.0, end + 0.2, end});
  return others;
}

TEST(MedianPruner, KeepsTrialAboveMedianAtSameStep) {
  // 0.45 is worse than every final value, but better than the median (0.5) at step 2.
  EXPECT_FALSE(JudgeMedian({}, Five(), {1.0, 0.45}).prune);
}

TEST(MedianPruner, KeepsTrialAtTheMedian) {
  EXPECT_FALSE(JudgeMedian({}, Five(), {1.0, 0.5}).prune);
}

TEST(MedianPruner, EndsTrialBelowMedianWithFigures) {
  const PruneVerdict verdict = JudgeMedian({}, Five(), {1.0, 0.51});
  EXPECT_TRUE(verdict.prune);
  EXPECT_EQ(verdict.reason,
            "0.51, its best up to step 2, is worse than the median 0.5 of 5 complete trials there");
}

TEST(MedianPruner, JudgesTheBestValueSoFar) {
  EXPECT_FALSE(JudgeMedian({}, Five(), {0.3, 0.9}).prune);
}

TEST(MedianPruner, MaximisesWhereAsked) {
  EXPECT_FALSE(JudgeMedian({}, Five(), {0.0, 0.51}, Direction::kMaximize).prune);
  EXPECT_TRUE(JudgeMedian({}, Five(), {0.0, 0.49}, Direction::kMaximize).prune);
}

TEST(MedianPruner, TakesTheMiddleOfAnEvenNumber) {
  Curves others;
  for (const double v : {0.1, 0.2, 0.4, 0.9}) others.Complete({v});
  EXPECT_FALSE(JudgeMedian({{"startup_trials", 4}}, others, {0.3}).prune);
  EXPECT_TRUE(JudgeMedian({{"startup_trials", 4}}, others, {0.301}).prune);
}

TEST(MedianPruner, WaitsForStartupTrials) {
  Curves others;
  for (int i = 0; i < 4; ++i) others.Complete({0.1});
  others.Running({0.1});
  EXPECT_FALSE(JudgeMedian({}, others, {0.9}).prune);
  others.Complete({0.1});
  EXPECT_TRUE(JudgeMedian({}, others, {0.9}).prune);
}

TEST(MedianPruner, SaysNothingInTheWarmUp) {
  EXPECT_FALSE(JudgeMedian({{"warmup_steps", 2}}, Five(), {1.0, 0.9}).prune);
  EXPECT_TRUE(JudgeMedian({{"warmup_steps", 1}}, Five(), {1.0, 0.9}).prune);
}

TEST(MedianPruner, JudgesOnceAnInterval) {
  EXPECT_TRUE(JudgeMedian({{"interval", 2}}, Five(), {1.0, 0.9}).prune);
  EXPECT_FALSE(JudgeMedian({{"interval", 2}}, Five(), {1.0, 0.9, 0.9}).prune);
}

TEST(MedianPruner, EndsWhatIsNotANumber) {
  const PruneVerdict verdict = JudgeMedian({}, Curves(), {0.5, NAN});
  EXPECT_TRUE(verdict.prune);
  EXPECT_THAT(verdict.reason, HasSubstr("step 2 is not a number"));
}

TEST(MedianPruner, IgnoresOthersThatAreNotNumbers) {
  Curves others = Five();
  for (int i = 0; i < 9; ++i) others.Complete({NAN, NAN});
  EXPECT_FALSE(JudgeMedian({}, others, {1.0, 0.45}).prune);
}

}  // namespace
}  // namespace espalier
