#include <cmath>

#include "gtest/gtest.h"
#include "tests/core/pruners/curves.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier {
namespace {

PruneVerdict JudgeWilcoxon(const Options& options, const std::vector<Curve>& others,
                           const std::vector<Curves::StepValue>& points,
                           Direction direction = Direction::kMinimize) {
  const auto pruner = MakePruner("wilcoxon", options);
  EXPECT_TRUE(pruner.ok()) << pruner.status();
  Curves mine;
  mine.AddPoints(points, false);
  return (*pruner)->Judge({direction, mine.all().front(), others});
}

// Trials on the instances 0 to 9; the second is the best.
std::vector<Curve> Two(const Curves& curves) {
  std::vector<Curve> two = curves.all();
  two[0].value = 0.9;
  two[1].value = 0.4;
  return two;
}

Curves Points() {
  Curves curves;
  std::vector<Curves::StepValue> bad;
  std::vector<Curves::StepValue> best;
  for (std::int64_t i = 0; i < 10; ++i) {
    bad.emplace_back(i, 0.9);
    best.emplace_back(i, 0.4 + 0.01 * static_cast<double>(i));
  }
  curves.AddPoints(bad, true);
  curves.AddPoints(best, true);
  return curves;
}

TEST(WilcoxonPruner, EndsTrialThatIsWorseThanTheBestWhereverItWasTried) {
  const Curves curves = Points();
  EXPECT_EQ(
      JudgeWilcoxon({}, Two(curves), {{2, 0.5}, {5, 0.6}, {7, 0.8}, {9, 0.9}}).reason,
      "on 4 instances worse than trial 1, the best (p 0.062, needs 0.1; mean 0.7, its 0.445)");
}

TEST(WilcoxonPruner, KeepsTrialOnTooFewInstances) {
  const Curves curves = Points();
  EXPECT_EQ(JudgeWilcoxon({}, Two(curves), {{2, 0.5}, {5, 0.6}, {7, 0.8}}).action,
            PruneAction::kKeep);  // p 0.125
  const Options options = {{"p_threshold", 0.2}};
  EXPECT_EQ(JudgeWilcoxon(options, Two(curves), {{2, 0.5}, {5, 0.6}, {7, 0.8}}).action,
            PruneAction::kPrune);
  EXPECT_EQ(JudgeWilcoxon({{"p_threshold", 0.2}, {"startup_steps", 4}}, Two(curves),
                          {{2, 0.5}, {5, 0.6}, {7, 0.8}})
                .action,
            PruneAction::kKeep);
}

TEST(WilcoxonPruner, ComparesOnlyInstancesThatBothHave) {
  const Curves curves = Points();
  EXPECT_EQ(JudgeWilcoxon({}, Two(curves), {{20, 0.9}, {21, 0.9}, {22, 0.9}, {23, 0.9}}).action,
            PruneAction::kKeep);
}

// Worse on the instances that both have, better on the whole.
TEST(WilcoxonPruner, KeepsTrialWhoseMeanIsNoWorse) {
  const Curves curves = Points();
  EXPECT_EQ(
      JudgeWilcoxon({}, Two(curves), {{2, 0.5}, {5, 0.6}, {7, 0.8}, {9, 0.9}, {20, -9}}).action,
      PruneAction::kKeep);
}

TEST(WilcoxonPruner, MaximisesWhereAsked) {
  const Curves curves = Points();
  std::vector<Curve> two = Two(curves);
  EXPECT_EQ(
      JudgeWilcoxon({}, two, {{1, 0.7}, {2, 0.6}, {3, 0.5}, {4, 0.3}}, Direction::kMaximize).reason,
      "on 4 instances worse than trial 0, the best (p 0.062, needs 0.1; mean 0.525, its 0.9)");
}

TEST(WilcoxonPruner, ComparesNothingThatIsNotFinite) {
  const Curves curves = Points();
  EXPECT_EQ(JudgeWilcoxon({}, Two(curves), {{2, 0.5}, {5, 0.6}, {7, 0.8}, {9, NAN}}).action,
            PruneAction::kKeep);
  Curves lost;
  lost.AddPoints({{1, 0.1}, {2, HUGE_VAL}, {3, 0.1}, {4, 0.1}, {5, 0.1}}, true);
  EXPECT_EQ(JudgeWilcoxon({}, lost.all(), {{1, 1}, {3, 1.1}, {4, 1.2}, {5, 1.3}}).action,
            PruneAction::kKeep);
}

TEST(WilcoxonPruner, HasNobodyToCompareWithBeforeATrialIsComplete) {
  Curves others;
  others.AddPoints({{1, 0.1}, {2, 0.1}, {3, 0.1}, {4, 0.1}}, false);
  EXPECT_EQ(JudgeWilcoxon({}, others.all(), {{1, 1}, {2, 1.1}, {3, 1.2}, {4, 1.3}}).action,
            PruneAction::kKeep);
}

}  // namespace
}  // namespace espalier
