#include <cmath>

#include "gtest/gtest.h"
#include "tests/core/pruners/curves.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier {
namespace {

PruneVerdict JudgeHalving(const Options& options, const std::vector<Curve>& others,
                          const std::vector<Curves::StepValue>& points, Time at = Time{1000}) {
  const auto pruner = MakePruner("successive_halving", options);
  EXPECT_TRUE(pruner.ok()) << pruner.status();
  std::vector<IntermediateValue> own;
  for (const auto& [step, value] : points) own.push_back({.step = step, .value = value, .at = at});
  return (*pruner)->Judge({Direction::kMinimize, {.trial_number = 100, .points = own}, others});
}

const Options kFromOne = {{"min_steps", 1}, {"eta", 2}};

TEST(SuccessiveHalvingPruner, LetsOnlyTheBestGoOnWhileARungIsEmpty) {
  Curves others;
  others.Running({0.5});
  EXPECT_EQ(JudgeHalving({{"min_steps", 1}}, others.all(), {{1, 0.4}}).action, PruneAction::kKeep);
  EXPECT_EQ(
      JudgeHalving({{"min_steps", 1}}, others.all(), {{1, 0.6}}).reason,
      "0.6 at step 1 is not among the best 1/4 of 2 trials at the rung of step 1 (needs 0.5)");
}

TEST(SuccessiveHalvingPruner, LetsTheBestPartAndTiesGoOn) {
  Curves others;
  for (const double v : {0.1, 0.2, 0.3, 0.4, 0.5}) others.Running({v});
  EXPECT_EQ(JudgeHalving(kFromOne, others.all(), {{1, 0.3}}).action, PruneAction::kKeep);
  EXPECT_EQ(JudgeHalving(kFromOne, others.all(), {{1, 0.31}}).action, PruneAction::kPrune);
  EXPECT_EQ(JudgeHalving(kFromOne, others.all(), {{1, 0.2}, {2, 0.9}}).action, PruneAction::kKeep);
}

TEST(SuccessiveHalvingPruner, JudgesAllRungsThatOneReportPasses) {
  Curves others;
  others.Running({0.9, 0.1});
  for (int i = 0; i < 3; ++i) others.Running({0.9});
  const auto verdict = JudgeHalving(kFromOne, others.all(), {{3, 0.2}});
  EXPECT_EQ(
      verdict.reason,
      "0.2 at step 3 is not among the best 1/2 of 2 trials at the rung of step 2 (needs 0.1)");
}

// The one that fell at the first rung with its report at step 8 is not met at the later ones.
TEST(SuccessiveHalvingPruner, DoesNotCountATrialBeyondTheRungWhereItFell) {
  Curves others;
  others.Running({0.1});
  others.AddPoints({{8, 0.2}}, false);
  EXPECT_EQ(JudgeHalving(kFromOne, others.all(), {{1, 0.05}, {2, 0.3}}).action, PruneAction::kKeep);
}

TEST(SuccessiveHalvingPruner, LeavesOutTheFirstRungs) {
  Curves others;
  others.Running({0.1, 0.1, 0.1, 0.1});
  Options options = kFromOne;
  options["min_early_stopping_rate"] = 2;
  EXPECT_EQ(JudgeHalving(options, others.all(), {{1, 1}, {2, 1}, {3, 1}}).action,
            PruneAction::kKeep);
  EXPECT_EQ(JudgeHalving(options, others.all(), {{1, 1}, {2, 1}, {3, 1}, {4, 1}}).action,
            PruneAction::kPrune);
  options["min_early_stopping_rate"] = 1e15;
  EXPECT_EQ(JudgeHalving(options, others.all(), {{1, 1}, {1LL << 60, 1}}).action,
            PruneAction::kKeep);
}

TEST(SuccessiveHalvingPruner, EndsTheFirstTrialsAtARungWhereAsked) {
  Curves others;
  others.Running({0.5});
  Options options = kFromOne;
  options["bootstrap_count"] = 2;
  EXPECT_EQ(JudgeHalving(options, others.all(), {{1, 0.1}}).reason,
            "0.1 at step 1 is one of the first 2 at the rung of step 1, which none survives");
  options["bootstrap_count"] = 1;
  EXPECT_EQ(JudgeHalving(options, others.all(), {{1, 0.1}}).action, PruneAction::kKeep);
}

TEST(SuccessiveHalvingPruner, BeginsAtAHundredthOfTheFirstCompleteTrial) {
  Curves curves;
  curves.AddPoints({{2, 0.1}, {200, 0.1}}, true);
  curves.AddPoints({{2, 0.1}, {900, 0.1}}, true);
  curves.AddPoints({{1, 0.1}, {2, 0.1}}, false);
  std::vector<Curve> others = curves.all();
  others[0].ended_at = Time{500};
  others[1].ended_at = Time{600};
  const auto judge = [&](std::int64_t step, Time at) {
    return JudgeHalving({}, others, {{step, 0.9}}, at).action;
  };
  // Nobody else has reported anything since, so that the trial is alone.
  EXPECT_EQ(judge(2, Time{1000}), PruneAction::kKeep);
  std::vector<IntermediateValue> later = {{.step = 2, .value = 0.1, .at = Time{700}}};
  others[2].points = later;
  EXPECT_EQ(judge(1, Time{1000}), PruneAction::kKeep);
  EXPECT_EQ(judge(2, Time{1000}), PruneAction::kPrune);
  EXPECT_EQ(judge(2, Time{500}), PruneAction::kKeep);  // before it was known
  others[0].complete = others[1].complete = false;
  EXPECT_EQ(judge(2, Time{1000}), PruneAction::kKeep);
}

TEST(SuccessiveHalvingPruner, EndsTrialThatHasNoNumberAtARung) {
  EXPECT_EQ(JudgeHalving(kFromOne, {}, {{1, 0.5}, {2, NAN}}).reason,
            "nan at step 2, where the rung of step 2 needs a number");
}

TEST(SuccessiveHalvingPruner, RefusesABootstrapWithoutAFirstRung) {
  EXPECT_EQ(
      std::string(MakePruner("successive_halving", {{"bootstrap_count", 2}}).status().message()),
      "pruner \"successive_halving\": option \"bootstrap_count\" needs 0 where min_steps is 0, "
      "got 2");
}

}  // namespace
}  // namespace espalier
