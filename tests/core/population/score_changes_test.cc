#include "tuner/core/population/score_changes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <utility>
#include <vector>

namespace espalier {
namespace {

// Members with an interval of 10, of which the parameters do not matter.
class ScoreChangesTest : public ::testing::Test {
 protected:
  std::size_t Add(const std::vector<std::pair<std::int64_t, double>>& told,
                  std::optional<std::size_t> parent = std::nullopt) {
    std::vector<IntermediateValue>& points = points_.emplace_back();
    for (const auto& [step, value] : told) {
      points.push_back({.step = step, .value = value, .at = {}});
    }
    members_.push_back({.curve = {.points = points}, .parent = parent});
    return members_.size() - 1;
  }
  std::vector<ScoreChange> Changes(std::int64_t step, std::size_t most = 1000,
                                   Direction direction = Direction::kMaximize) {
    return ScoreChanges(population_, direction, members_, step, most);
  }

  const PopulationSpec population_{.interval = 10, .parameters = {}};
  std::deque<std::vector<IntermediateValue>> points_;
  std::vector<PopulationMember> members_;
};

TEST_F(ScoreChangesTest, AreOfAStepAndNewestFirst) {
  Add({{5, 1}, {10, 2}, {20, 7}, {25, 100}});
  const auto changes = Changes(20);
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].begin, 10);
  EXPECT_DOUBLE_EQ(changes[0].change, 0.5);
  EXPECT_EQ(changes[1].begin, 0);
  EXPECT_DOUBLE_EQ(changes[1].change, 0.2) << "nothing is known of it before its first value";
  EXPECT_DOUBLE_EQ(Changes(20, 1000, Direction::kMinimize)[0].change, -0.5);
}

TEST_F(ScoreChangesTest, OfACloneBeginWithWhatItsLineHadToldBeforeIt) {
  const std::size_t first = Add({{10, 1}, {14, 3}, {20, 50}});
  const std::size_t second = Add({{15, 4}}, first);
  Add({{20, 9}, {30, 10}}, second);
  const auto changes = Changes(30);
  ASSERT_GE(changes.size(), 3U);
  EXPECT_EQ(changes[0].member, 2U);
  EXPECT_DOUBLE_EQ(changes[0].change, 0.1);
  EXPECT_EQ(changes[1].member, first);
  EXPECT_EQ(changes[2].member, second);
  EXPECT_DOUBLE_EQ(changes[2].change, 1) << "since step 14, not since what its parent came to";
  EXPECT_EQ(changes[3].member, 2U);
  EXPECT_DOUBLE_EQ(changes[3].change, 1) << "of the five steps from step 15";
}

TEST_F(ScoreChangesTest, WhatDoesNotCountIsTheWorstInBothDirections) {
  for (const Direction direction : {Direction::kMinimize, Direction::kMaximize}) {
    for (const double bad : {NAN, INFINITY, -INFINITY}) {
      members_.clear();
      Add({{10, 1}, {20, bad}, {30, 1}});
      const auto changes = Changes(30, 1000, direction);
      ASSERT_EQ(changes.size(), 1U) << "nothing is known of the interval after it";
      EXPECT_EQ(changes[0].change, -INFINITY);
    }
  }
}

TEST_F(ScoreChangesTest, AreOfWholeIntervalsUpToSoMany) {
  for (int i = 0; i < 3; ++i) Add({{10, 1}, {20, 2}, {30, 3}, {40, 4}});
  EXPECT_EQ(Changes(40).size(), 9U);
  EXPECT_EQ(Changes(40, 8).size(), 6U);
  EXPECT_EQ(Changes(40, 2).size(), 3U) << "the newest interval in any case";
  EXPECT_EQ(Changes(30).size(), 6U) << "what comes after the step is not known";
}

TEST_F(ScoreChangesTest, AnIntervalWithoutAnyEndsNothing) {
  Add({{10, 1}, {20, 2}, {40, 4}, {50, 5}});
  const auto changes = Changes(50);
  ASSERT_EQ(changes.size(), 3U);
  EXPECT_EQ(changes[1].begin, 30);
  EXPECT_DOUBLE_EQ(changes[1].change, 0.1) << "it waited from step 20 on";
}

// Of a program whose steps are samples: a walk over each interval would not end.
TEST_F(ScoreChangesTest, FromOneReportToTheNextThereMayBeAnyNumberOfIntervals) {
  constexpr std::int64_t kFar = 1'000'000'000'000'000;
  Add({{kFar, 1}, {2 * kFar, 2}, {3 * kFar, 4}});
  const auto changes = Changes(3 * kFar);
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].begin, 3 * kFar - 10);
  EXPECT_EQ(changes[1].begin, 2 * kFar - 10);
  EXPECT_TRUE(Changes(kFar - 10).empty());
}

}  // namespace
}  // namespace espalier
