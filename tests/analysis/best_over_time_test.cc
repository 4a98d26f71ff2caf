#include "tuner/analysis/best_over_time.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace espalier {
namespace {

TrialCopy Ended(double at_s, double value) {
  TrialCopy trial;
  trial.id = TrialId(static_cast<std::int64_t>(at_s));
  trial.state = TrialState::kComplete;
  trial.ended = TimeFromSeconds(at_s);
  trial.values = {value, -value};
  return trial;
}

std::vector<double> Values(const std::vector<Improvement>& improvements) {
  std::vector<double> values;
  for (const Improvement& one : improvements) values.push_back(one.value);
  return values;
}

TEST(BestOverTime, HasWhatWasBetterThanAllBefore) {
  std::vector<TrialCopy> trials = {Ended(30, 4), Ended(10, 5), Ended(20, NAN),      Ended(40, 4),
                                   Ended(50, 1), Ended(60, 2), Ended(15, -INFINITY)};
  trials.push_back(Ended(5, 0));
  trials.back().state = TrialState::kPruned;
  const std::vector<Improvement> best = BestOverTime(trials, 0, Direction::kMinimize, 100);
  EXPECT_EQ(Values(best), (std::vector<double>{5, 4, 1}));
  EXPECT_EQ(best[1].trial, TrialId(30));
  EXPECT_EQ(best[1].at, TimeFromSeconds(30));
  EXPECT_EQ(Values(BestOverTime(trials, 1, Direction::kMaximize, 100)),
            (std::vector<double>{-5, -4, -1}));
  EXPECT_TRUE(BestOverTime(trials, 2, Direction::kMinimize, 100).empty())
      << "there are two objectives";
}

TEST(BestOverTime, HasTheBestOfAMomentAlone) {
  const std::vector<TrialCopy> trials = {Ended(10, 5), Ended(10, 3), Ended(10, 4)};
  EXPECT_EQ(Values(BestOverTime(trials, 0, Direction::kMinimize, 100)), (std::vector<double>{3}));
}

TEST(BestOverTime, PassesOverTrialsThatBreakAConstraint) {
  std::vector<TrialCopy> trials = {Ended(10, 5), Ended(20, 1), Ended(30, 3)};
  trials[1].constraints = {0.5};
  EXPECT_EQ(Values(BestOverTime(trials, 0, Direction::kMinimize, 100)),
            (std::vector<double>{5, 3}));
}

TEST(BestOverTime, KeepsItsEndsWhereItIsCut) {
  std::vector<TrialCopy> trials;
  for (int i = 1; i <= 1000; ++i) trials.push_back(Ended(i, i));
  const std::vector<Improvement> best = BestOverTime(trials, 0, Direction::kMaximize, 11);
  ASSERT_EQ(best.size(), 11u);
  EXPECT_EQ(best.front().value, 1);
  EXPECT_EQ(best.back().value, 1000);
}

}  // namespace
}  // namespace espalier
