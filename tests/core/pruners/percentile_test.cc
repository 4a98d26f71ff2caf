#include <cmath>

#include "gtest/gtest.h"
#include "tests/core/pruners/curves.h"
#include "tuner/core/pruners/percentile_rule.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier {
namespace {

PruneVerdict JudgePercentile(const Options& options, const Curves& others,
                             const std::vector<double>& values,
                             Direction direction = Direction::kMinimize) {
  const auto pruner = MakePruner("percentile", options);
  EXPECT_TRUE(pruner.ok()) << pruner.status();
  Curves mine;
  mine.Add(values, false);
  return (*pruner)->Judge({direction, mine.all().front(), others.all()});
}

// At step 2: 0.1 to 0.9.
Curves Nine() {
  Curves others;
  for (int i = 1; i <= 9; ++i) others.Complete({1.0, i / 10.0});
  return others;
}

TEST(PercentilePruner, KeepsTheBestQuarterUnlessToldOtherwise) {
  EXPECT_EQ(JudgePercentile({}, Nine(), {1.0, 0.3}).action, PruneAction::kKeep);
  EXPECT_EQ(JudgePercentile({}, Nine(), {1.0, 0.31}).reason,
            "0.31, its best up to step 2, is not among the best 25 % of 9 complete trials there "
            "(needs 0.3)");
}

TEST(PercentilePruner, KeepsAsManyAsItIsTold) {
  EXPECT_EQ(JudgePercentile({{"percentile", 75}}, Nine(), {1.0, 0.7}).action, PruneAction::kKeep);
  EXPECT_EQ(JudgePercentile({{"percentile", 0}}, Nine(), {1.0, 0.11}).action, PruneAction::kPrune);
  EXPECT_EQ(JudgePercentile({{"percentile", 100}}, Nine(), {1.0, 0.9}).action, PruneAction::kKeep);
}

TEST(PercentilePruner, MaximisesWhereAsked) {
  const Direction up = Direction::kMaximize;
  EXPECT_EQ(JudgePercentile({}, Nine(), {0.0, 0.7}, up).action, PruneAction::kKeep);
  EXPECT_EQ(JudgePercentile({}, Nine(), {0.0, 0.69}, up).action, PruneAction::kPrune);
}

TEST(PercentilePruner, WaitsUntilEnoughTrialsHaveReportedTheStep) {
  Curves others = Nine();
  for (int i = 0; i < 3; ++i) others.Complete({1.0, 0.5, 0.1});
  EXPECT_EQ(JudgePercentile({{"min_trials", 3}}, others, {1, 1, 0.9}).action, PruneAction::kPrune);
  EXPECT_EQ(JudgePercentile({{"min_trials", 4}}, others, {1, 1, 0.9}).action, PruneAction::kKeep);
}

TEST(Percentile, LiesBetweenTwoValuesInProportion) {
  EXPECT_EQ(Percentile({3, 1, 2}, 50), 2);
  EXPECT_EQ(Percentile({4, 1}, 0), 1);
  EXPECT_EQ(Percentile({4, 1}, 100), 4);
  EXPECT_EQ(Percentile({4, 1}, 25), 1.75);
  EXPECT_EQ(Percentile({4, 1}, 75), 3.25);
  EXPECT_EQ(Percentile({7}, 30), 7);
}

TEST(Percentile, IsNoNaNBetweenInfinities) {
  EXPECT_EQ(Percentile({1, HUGE_VAL}, 0), 1);
  EXPECT_EQ(Percentile({1, HUGE_VAL}, 30), HUGE_VAL);
  EXPECT_EQ(Percentile({-HUGE_VAL, 1}, 70), -HUGE_VAL);
  EXPECT_EQ(Percentile({HUGE_VAL, HUGE_VAL}, 30), HUGE_VAL);
}

}  // namespace
}  // namespace espalier
