#include <cmath>

#include "gtest/gtest.h"
#include "tests/core/pruners/curves.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier {
namespace {

PruneVerdict JudgeThreshold(const Options& options, const std::vector<double>& values) {
  const auto pruner = MakePruner("threshold", options);
  EXPECT_TRUE(pruner.ok()) << pruner.status();
  Curves mine;
  mine.Add(values, false);
  return (*pruner)->Judge({Direction::kMinimize, mine.all().front(), {}});
}

TEST(ThresholdPruner, EndsTrialThatIsOutOfBoundsWithFigures) {
  const Options options = {{"lower", -0.5}, {"upper", 2}};
  EXPECT_EQ(JudgeThreshold(options, {1, 2}).action, PruneAction::kKeep);
  EXPECT_EQ(JudgeThreshold(options, {1, -0.5}).action, PruneAction::kKeep);
  EXPECT_EQ(JudgeThreshold(options, {1, 2.5}).reason, "2.5 at step 2 is above 2");
  EXPECT_EQ(JudgeThreshold(options, {1, -1}).reason, "-1 at step 2 is below -0.5");
}

TEST(ThresholdPruner, TakesOneBoundAlone) {
  EXPECT_EQ(JudgeThreshold({{"upper", 2}}, {-1e9}).action, PruneAction::kKeep);
  EXPECT_EQ(JudgeThreshold({{"lower", 2}}, {1e9}).action, PruneAction::kKeep);
}

TEST(ThresholdPruner, EndsTrialWhoseNewestValueIsNoNumber) {
  EXPECT_EQ(JudgeThreshold({{"upper", 2}}, {1, NAN}).reason, "nan at step 2 is no number");
  EXPECT_EQ(JudgeThreshold({{"upper", 2}}, {NAN, 1}).action, PruneAction::kKeep);
}

TEST(ThresholdPruner, SaysNothingInTheWarmUpAndBetweenChecks) {
  const Options options = {{"upper", 2}, {"warmup_steps", 2}, {"interval", 2}};
  EXPECT_EQ(JudgeThreshold(options, {9}).action, PruneAction::kKeep);
  EXPECT_EQ(JudgeThreshold(options, {1, 9}).action, PruneAction::kPrune);
  EXPECT_EQ(JudgeThreshold(options, {1, 1, 9}).action, PruneAction::kKeep);
  EXPECT_EQ(JudgeThreshold(options, {1, 1, 1, 9}).action, PruneAction::kPrune);
}

TEST(ThresholdPruner, NeedsABoundAndBoundsInOrder) {
  EXPECT_EQ(std::string(MakePruner("threshold", {}).status().message()),
            "pruner \"threshold\": needs option \"lower\", \"upper\" or both");
  EXPECT_EQ(std::string(MakePruner("threshold", {{"lower", 2}, {"upper", 1}}).status().message()),
            "pruner \"threshold\": option \"lower\" needs at most upper (1), got 2");
}

}  // namespace
}  // namespace espalier
