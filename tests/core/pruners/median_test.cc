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
  EXPECT_NE(JudgeMedian({}, Five(), {1.0, 0.45}).action, PruneAction::kPrune);
}

TEST(MedianPruner, KeepsTrialAtTheMedian) {
  EXPECT_NE(JudgeMedian({}, Five(), {1.0, 0.5}).action, PruneAction::kPrune);
}

TEST(MedianPruner, EndsTrialBelowMedianWithFigures) {
  const PruneVerdict verdict = JudgeMedian({}, Five(), {1.0, 0.51});
  EXPECT_EQ(verdict.action, PruneAction::kPrune);
  EXPECT_EQ(verdict.reason,
            "0.51, its best up to step 2, is worse than the median 0.5 of 5 complete trials there");
}

TEST(MedianPruner, JudgesTheBestValueSoFar) {
  EXPECT_NE(JudgeMedian({}, Five(), {0.3, 0.9}).action, PruneAction::kPrune);
}

TEST(MedianPruner, MaximisesWhereAsked) {
  EXPECT_NE(JudgeMedian({}, Five(), {0.0, 0.51}, Direction::kMaximize).action, PruneAction::kPrune);
  EXPECT_EQ(JudgeMedian({}, Five(), {0.0, 0.49}, Direction::kMaximize).action, PruneAction::kPrune);
}

TEST(MedianPruner, TakesTheMiddleOfAnEvenNumber) {
  Curves others;
  for (const double v : {0.1, 0.2, 0.4, 0.9}) others.Complete({v});
  EXPECT_NE(JudgeMedian({{"startup_trials", 4}}, others, {0.3}).action, PruneAction::kPrune);
  EXPECT_EQ(JudgeMedian({{"startup_trials", 4}}, others, {0.301}).action, PruneAction::kPrune);
}

TEST(MedianPruner, WaitsForStartupTrials) {
  Curves others;
  for (int i = 0; i < 4; ++i) others.Complete({0.1});
  others.Running({0.1});
  EXPECT_NE(JudgeMedian({}, others, {0.9}).action, PruneAction::kPrune);
  others.Complete({0.1});
  EXPECT_EQ(JudgeMedian({}, others, {0.9}).action, PruneAction::kPrune);
}

TEST(MedianPruner, SaysNothingInTheWarmUp) {
  EXPECT_NE(JudgeMedian({{"warmup_steps", 3}}, Five(), {1.0, 0.9}).action, PruneAction::kPrune);
  EXPECT_EQ(JudgeMedian({{"warmup_steps", 2}}, Five(), {1.0, 0.9}).action, PruneAction::kPrune);
}

TEST(MedianPruner, JudgesStepZero) {
  Curves others;
  for (const double first : {0.1, 0.2, 0.3, 0.4, 0.5})
    others.AddPoints({{0, first}, {1, first}}, true);
  const std::unique_ptr<Pruner> pruner = *MakePruner("median", {});
  const std::unique_ptr<Pruner> later = *MakePruner("median", {{"warmup_steps", 1}});
  for (const bool past : {false, true}) {
    Curves mine;
    past ? mine.AddPoints({{0, 0.9}, {1, 0.8}}, false) : mine.AddPoints({{0, 0.9}}, false);
    const PrunerInput input{Direction::kMinimize, mine.all().front(), others.all()};
    EXPECT_EQ(pruner->Judge(input).action, PruneAction::kPrune);
    EXPECT_EQ(later->Judge(input).action, past ? PruneAction::kPrune : PruneAction::kKeep);
  }
}

TEST(MedianPruner, JudgesOnceAnInterval) {
  EXPECT_EQ(JudgeMedian({{"interval", 2}}, Five(), {1.0, 0.9}).action, PruneAction::kPrune);
  EXPECT_NE(JudgeMedian({{"interval", 2}}, Five(), {1.0, 0.9, 0.9}).action, PruneAction::kPrune);
}

TEST(MedianPruner, JudgesTheBestNumberWhateverCameAfter) {
  EXPECT_EQ(JudgeMedian({}, Five(), {0.3, NAN}).action, PruneAction::kKeep);
  EXPECT_THAT(JudgeMedian({}, Five(), {0.9, NAN}).reason, HasSubstr("0.9, its best up to step 2"));
}

TEST(MedianPruner, IgnoresOthersThatAreNotNumbers) {
  Curves others = Five();
  for (int i = 0; i < 9; ++i) others.Complete({NAN, NAN});
  EXPECT_NE(JudgeMedian({}, others, {1.0, 0.45}).action, PruneAction::kPrune);
}

}  // namespace
}  // namespace espalier
