#include "trial_runner/elastic/evaluation_keys.h"

#include "gtest/gtest.h"

namespace espalier {
namespace {

TrainingPosition At(std::int64_t step, std::int64_t epoch, std::int64_t cursor = 0) {
  TrainingPosition position;
  position.step = step;
  position.epoch = epoch;
  position.cursor = cursor;
  return position;
}

TEST(EvaluationKeys, CountTheCallsAtOnePlace) {
  EvaluationKeys keys;
  keys.BeginEpoch();
  const TrainingPosition start = At(4, 1);
  EXPECT_EQ(keys.Next(1, start), (EvaluationKey{1, 4, 0}));
  EXPECT_EQ(keys.Next(1, start), (EvaluationKey{1, 4, 1}));
  EXPECT_EQ(keys.CallsAfter(1, 4), 2);
  keys.ComeToLoop();
  keys.BeginMicrobatch();
  EXPECT_EQ(keys.CallsAfter(1, 5), 0);
  EXPECT_EQ(keys.Next(1, At(5, 1, 8)), (EvaluationKey{1, 5, 0}));
}

// The others evaluated before the epoch's first step, and have trained on since.
TEST(EvaluationKeys, WhoJoinsInMidEpochHasTheFirstCallsToMakeYet) {
  EvaluationKeys keys;
  keys.BeginEpoch();
  TrainingPosition late = At(7, 1, 24);
  late.AddEvaluation({1, 4, 0}, {0.5});
  EXPECT_EQ(keys.Next(1, late), (EvaluationKey{1, 4, 0}));
  keys.ComeToLoop();
  EXPECT_EQ(keys.Next(1, late), (EvaluationKey{1, 7, 0}));
}

TEST(EvaluationKeys, ASpareGoesOnBetweenTwoCallsWhereverTheOthersAre) {
  EvaluationKeys keys;
  keys.BeginEpoch();
  keys.ComeToLoop();
  keys.BeginMicrobatch();
  EXPECT_EQ(keys.Next(1, At(4, 1)), (EvaluationKey{1, 4, 0}));
  const TrainingPosition gone_on = At(30, 5);
  EXPECT_EQ(keys.Next(1, gone_on), (EvaluationKey{1, 30, 1}));
  // But not once it has trained: then it is at another place of its own epoch.
  keys.BeginMicrobatch();
  EXPECT_EQ(keys.Next(1, At(31, 5)), (EvaluationKey{1, 31, 0}));
}

TEST(EvaluationKeys, CallsOfOthersAreSkipped) {
  EvaluationKeys keys;
  keys.BeginEpoch();
  keys.ComeToLoop();
  keys.Skip({1, 4, 2});
  EXPECT_EQ(keys.Next(1, At(4, 1)), (EvaluationKey{1, 4, 2}));
}

}  // namespace
}  // namespace espalier
