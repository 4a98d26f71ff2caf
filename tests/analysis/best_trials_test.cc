#include "tuner/analysis/best_trials.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace espalier {
namespace {

using Numbers = std::vector<std::int64_t>;
constexpr Direction kMin = Direction::kMinimize;
constexpr Direction kMax = Direction::kMaximize;

std::vector<TrialCopy> Complete(const std::vector<std::vector<double>>& values) {
  std::vector<TrialCopy> trials;
  for (const std::vector<double>& one : values) {
    TrialCopy trial;
    trial.number = std::ssize(trials);
    trial.state = TrialState::kComplete;
    trial.values = one;
    trials.push_back(trial);
  }
  return trials;
}

TEST(BestTrials, OneOfOneObjectiveTheFirstOfEquals) {
  std::vector<TrialCopy> trials = Complete({{3}, {1}, {NAN}, {1}, {0}, {5}});
  trials[4].state = TrialState::kPruned;
  EXPECT_EQ(BestTrials(trials, {kMin}), Numbers{1});
  EXPECT_EQ(BestTrials(trials, {kMax}), Numbers{5});
  EXPECT_EQ(BestTrials({}, {kMin}), Numbers{});
  EXPECT_EQ(BestTrials(Complete({{1, 2}}), {kMin}), Numbers{}) << "too many values";
}

TEST(BestTrials, EqualPointsOfAFrontAreAllOnIt) {
  EXPECT_EQ(BestTrials(Complete({{1, 1}, {1, 1}, {2, 1}, {0, 2}}), {kMin, kMin}),
            (Numbers{0, 1, 3}));
  EXPECT_EQ(BestTrials(Complete({{1, 1}, {1, 1}, {2, 1}, {0, 2}}), {kMax, kMin}), (Numbers{2}));
}

TEST(BestTrials, KeepToTheirConstraints) {
  std::vector<TrialCopy> trials = Complete({{1}, {2}, {3}, {0}});
  trials[0].constraints = {-1, 0.5};
  trials[1].constraints = {-1, 0};
  trials[3].constraints = {NAN};
  EXPECT_EQ(BestTrials(trials, {kMin}), Numbers{1});
  for (TrialCopy& trial : trials) trial.values.push_back(1);
  EXPECT_EQ(BestTrials(trials, {kMin, kMin}), Numbers{1});
  for (TrialCopy& trial : trials) trial.constraints = {1};
  EXPECT_EQ(BestTrials(trials, {kMin, kMin}), Numbers{});
}

// As Optuna compares: its clients and its dashboard take infinities for numbers.
bool Less(Direction direction, double a, double b) {
  return direction == Direction::kMinimize ? a < b : a > b;
}

// The front by its definition.
Numbers Front(const std::vector<TrialCopy>& trials, const std::vector<Direction>& directions) {
  Numbers front;
  for (const TrialCopy& a : trials) {
    bool dominated = false;
    for (const TrialCopy& b : trials) {
      bool no_worse = true;
      bool better = false;
      for (std::size_t i = 0; i < directions.size(); ++i) {
        no_worse = no_worse && !Less(directions[i], a.values[i], b.values[i]);
        better = better || Less(directions[i], b.values[i], a.values[i]);
      }
      dominated = dominated || (no_worse && better);
    }
    if (!dominated) front.push_back(a.number);
  }
  return front;
}

TEST(BestTrials, FrontsOfManyPoints) {
  Random random(7);
  for (int round = 0; round < 60; ++round) {
    const std::size_t objectives = 2 + random.Below(3);
    std::vector<Direction> directions;
    for (std::size_t i = 0; i < objectives; ++i)
      directions.push_back(random.Below(2) == 0 ? kMin : kMax);
    std::vector<std::vector<double>> values(1 + random.Below(80));
    for (auto& one : values) {
      for (std::size_t i = 0; i < objectives; ++i) {
        one.push_back(random.Below(9) == 0 ? INFINITY : static_cast<double>(random.Below(12)));
      }
    }
    const std::vector<TrialCopy> trials = Complete(values);
    EXPECT_EQ(BestTrials(trials, directions), Front(trials, directions)) << "round " << round;
  }
}

}  // namespace
}  // namespace espalier
