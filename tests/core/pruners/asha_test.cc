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
  EXPECT_TRUE(verdict.prune);
  EXPECT_EQ(verdict.reason,
            "0.71 at step 3 is not among the best 1/3 of 9 trials there (needs 0.78)");
}

TEST(AshaPruner, KeepsTrialInTheBestThird) {
  EXPECT_FALSE(JudgeAsha({}, Eight(), {{1, 0.1}, {2, 0.1}, {3, 0.79}}).prune);
}

TEST(AshaPruner, LetsTiesGoOn) {
  Curves others;
  for (int i = 0; i < 8; ++i) others.Running({0.5});
  EXPECT_FALSE(JudgeAsha({}, others, {{1, 0.5}}).prune);
}

TEST(AshaPruner, MinimisesWhereAsked) {
  EXPECT_TRUE(JudgeAsha({}, Eight(), {{2, 0.1}, {3, 0.31}}, Direction::kMinimize).prune);
  EXPECT_FALSE(JudgeAsha({}, Eight(), {{2, 0.1}, {3, 0.15}}, Direction::kMinimize).prune);
}

TEST(AshaPruner, SaysNothingBetweenRungs) {
  EXPECT_FALSE(JudgeAsha({}, Eight(), {{1, 0.1}, {2, 0.0}}).prune);
  EXPECT_FALSE(JudgeAsha({{"min_steps", 4}}, Eight(), {{2, 0.0}, {3, 0.0}}).prune);
}

TEST(AshaPruner, KeepsAllWhileARungIsNearlyEmpty) {
  Curves others;
  others.Running({0.9});
  EXPECT_FALSE(JudgeAsha({}, others, {{1, 0.1}}).prune);
  others.Running({0.8});
  EXPECT_TRUE(JudgeAsha({}, others, {{1, 0.1}}).prune);
}

TEST(AshaPruner, JudgesARareReporterByItsFirstValueAfterTheRung) {
  // Others have passed rungs 1, 3 and 9 with points at 5 and 10 only.
  Curves others;
  for (const double v : {0.2, 0.4, 0.6}) others.AddPoints({{5, v}, {10, v + 0.1}}, false);
  EXPECT_TRUE(JudgeAsha({}, others, {{5, 0.55}}).prune);
  EXPECT_FALSE(JudgeAsha({}, others, {{5, 0.61}}).prune);
  EXPECT_TRUE(JudgeAsha({}, others, {{5, 0.65}, {10, 0.69}}).prune);
}

TEST(AshaPruner, LeavesOutRungsAtTheEnd) {
  EXPECT_FALSE(JudgeAsha({{"max_steps", 3}}, Eight(), {{2, 0.0}, {3, 0.0}}).prune);
  EXPECT_TRUE(JudgeAsha({{"max_steps", 4}}, Eight(), {{2, 0.0}, {3, 0.0}}).prune);
}

TEST(AshaPruner, EndsWhatIsNotANumberAndRanksItLast) {
  EXPECT_TRUE(JudgeAsha({}, Curves(), {{2, NAN}}).prune);
  Curves others;
  for (int i = 0; i < 8; ++i) others.Running({NAN});
  EXPECT_FALSE(JudgeAsha({}, others, {{1, 0.0}}).prune);
}

TEST(AshaPruner, TakesTheLargestSteps) {
  EXPECT_FALSE(JudgeAsha({{"min_steps", 1e15}}, {}, {{1, 0.5}, {INT64_MAX, 0.5}}).prune);
}

TEST(AshaPruner, RefusesEndBeforeFirstRung) {
  const auto pruner = MakePruner("asha", {{"min_steps", 9}, {"max_steps", 4}});
  EXPECT_THAT(std::string(pruner.status().message()),
              ::testing::HasSubstr("at least min_steps (9), got 4"));
}

}  // namespace
}  // namespace espalier
