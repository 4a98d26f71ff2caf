#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/pruners/curves.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier {
namespace {

PruneVerdict JudgeAsha(const Options& options, const Curves& others,
                       const std::vector<Curves::StepValue>& points,
                       Direction direction = Direction::kMaximize) {
  const auto pruner = MakePruner("asha", options);
  EXPECT_TRUE(pruner.ok()) << pruner.status();
  Curves mine;
  mine.AddPoints(points, false);
  return (*pruner)->Judge({direction, mine.all().front(), others.all()});
}

Curves Eight() {
  Curves others;
  for (const double v : {0.10, 0.20, 0.30, 0.40, 0.50, 0.78, 0.80, 0.90}) {
    others.Running({0.1, 0.1, v});
  }
  return others;
}

TEST(AshaPruner, EndsTrialOutsideTheBestThirdWithFigures) {
  const PruneVerdict verdict = JudgeAsha({}, Eight(), {{1, 0.1}, {2, 0.1}, {3, 0.71}});
  EXPECT_EQ(verdict.action, PruneAction::kPrune);
  EXPECT_EQ(verdict.reason,
            "0.71 at step 3 is not among the best 1/3 of 9 trials there (needs 0.78)");
}

TEST(AshaPruner, KeepsTrialInTheBestThird) {
  EXPECT_NE(JudgeAsha({}, Eight(), {{1, 0.1}, {2, 0.1}, {3, 0.79}}).action, PruneAction::kPrune);
}

TEST(AshaPruner, LetsTiesGoOn) {
  Curves others;
  for (int i = 0; i < 8; ++i) others.Running({0.5});
  EXPECT_NE(JudgeAsha({}, others, {{1, 0.5}}).action, PruneAction::kPrune);
}

TEST(AshaPruner, MinimisesWhereAsked) {
  EXPECT_EQ(JudgeAsha({}, Eight(), {{2, 0.1}, {3, 0.31}}, Direction::kMinimize).action,
            PruneAction::kPrune);
  EXPECT_NE(JudgeAsha({}, Eight(), {{2, 0.1}, {3, 0.15}}, Direction::kMinimize).action,
            PruneAction::kPrune);
}

TEST(AshaPruner, SaysNothingBetweenRungs) {
  EXPECT_NE(JudgeAsha({}, Eight(), {{1, 0.1}, {2, 0.0}}).action, PruneAction::kPrune);
  EXPECT_NE(JudgeAsha({{"min_steps", 4}}, Eight(), {{2, 0.0}, {3, 0.0}}).action,
            PruneAction::kPrune);
}

TEST(AshaPruner, KeepsAllWhileARungIsNearlyEmpty) {
  Curves others;
  others.Running({0.9});
  EXPECT_NE(JudgeAsha({}, others, {{1, 0.1}}).action, PruneAction::kPrune);
  others.Running({0.8});
  EXPECT_EQ(JudgeAsha({}, others, {{1, 0.1}}).action, PruneAction::kPrune);
}

TEST(AshaPruner, JudgesARareReporterByItsFirstValueAfterTheRung) {
  // Others have passed rungs 1, 3 and 9 with points at 5 and 10 only.
  Curves others;
  for (const double v : {0.2, 0.4, 0.6}) others.AddPoints({{5, v}, {10, v + 0.1}}, false);
  EXPECT_EQ(JudgeAsha({}, others, {{5, 0.55}}).action, PruneAction::kPrune);
  EXPECT_NE(JudgeAsha({}, others, {{5, 0.61}}).action, PruneAction::kPrune);
  EXPECT_EQ(JudgeAsha({}, others, {{5, 0.65}, {10, 0.69}}).action, PruneAction::kPrune);
}

TEST(AshaPruner, LeavesOutRungsAtTheEnd) {
  EXPECT_NE(JudgeAsha({{"max_steps", 3}}, Eight(), {{2, 0.0}, {3, 0.0}}).action,
            PruneAction::kPrune);
  EXPECT_EQ(JudgeAsha({{"max_steps", 4}}, Eight(), {{2, 0.0}, {3, 0.0}}).action,
            PruneAction::kPrune);
}

TEST(AshaPruner, EndsWhatIsNotANumberAtARungAndRanksItLast) {
  EXPECT_EQ(JudgeAsha({}, Curves(), {{1, 0.5}, {2, NAN}}).action, PruneAction::kKeep);
  EXPECT_THAT(JudgeAsha({}, Curves(), {{1, 0.5}, {2, 0.5}, {4, INFINITY}}).reason,
              HasSubstr("inf at step 4, where the rung of step 3 needs a number"));
  EXPECT_EQ(JudgeAsha({}, Curves(), {{2, NAN}}).action, PruneAction::kPrune);
  Curves others;
  for (int i = 0; i < 8; ++i) others.Running({NAN});
  EXPECT_NE(JudgeAsha({}, others, {{1, 0.0}}).action, PruneAction::kPrune);
}

TEST(AshaPruner, TakesTheLargestSteps) {
  EXPECT_NE(JudgeAsha({{"min_steps", 1e15}}, {}, {{1, 0.5}, {INT64_MAX, 0.5}}).action,
            PruneAction::kPrune);
}

TEST(AshaPruner, RefusesEndBeforeFirstRung) {
  const auto pruner = MakePruner("asha", {{"min_steps", 9}, {"max_steps", 4}});
  EXPECT_THAT(std::string(pruner.status().message()),
              ::testing::HasSubstr("at least min_steps (9), got 4"));
}

}  // namespace
}  // namespace espalier
