#include "tuner/core/population/truncation.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace espalier {
namespace {

using Points = std::vector<IntermediateValue>;

// One value each, at step 10 but where a test says otherwise.
class TruncationTest : public ::testing::Test {
 protected:
  std::size_t Add(double value, std::int64_t step = 10, bool ended = false) {
    points_.push_back(Points{{.step = step, .value = value, .at = {}}});
    ended_.push_back(ended);
    return points_.size() - 1;
  }
  std::optional<Exploit> Ask(std::size_t member, std::int64_t step = 10,
                             Direction direction = Direction::kMinimize) {
    std::vector<Curve> curves;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      Curve curve{.trial_number = static_cast<std::int64_t>(i), .points = points_[i]};
      curve.ended = ended_[i];
      curves.push_back(curve);
    }
    return Select(truncation_, direction, curves, member, step, random_);
  }

  PopulationSpec truncation_{.interval = 10, .quantile = 0.25, .parameters = {}};
  std::vector<Points> points_;
  std::vector<bool> ended_;
  Random random_{7};
};

TEST_F(TruncationTest, WorstOfFourTakesOverFromBest) {
  for (const double value : {0.4, 0.1, 0.3, 0.2}) Add(value);
  const auto exploit = Ask(0);
  ASSERT_TRUE(exploit);
  EXPECT_EQ(exploit->loser, 0U);
  EXPECT_EQ(exploit->winner, 1U);
  EXPECT_EQ(exploit->step, 10);
  for (const std::size_t other : {1U, 2U, 3U}) EXPECT_FALSE(Ask(other)) << other;
  const auto largest = Ask(1, 10, Direction::kMaximize);
  ASSERT_TRUE(largest);
  EXPECT_EQ(largest->winner, 0U);
}

// Ray: ceil(n q), or floor(n / 2) where that is more than half; nobody of one alone.
TEST_F(TruncationTest, EndsAreAsLargeAsInRay) {
  const std::array<std::array<int, 4>, 4> expected{{
      // members, and losers with quantiles 0, 0.25 and 0.5
      {1, 0, 0, 0},
      {3, 0, 1, 1},
      {5, 0, 2, 2},
      {8, 0, 2, 4},
  }};
  for (const auto& [members, none, quarter, half] : expected) {
    points_.clear();
    ended_.clear();
    for (int i = 0; i < members; ++i) Add(i);
    for (const auto& [quantile, losers] :
         {std::pair(0.0, none), std::pair(0.25, quarter), std::pair(0.5, half)}) {
      truncation_.quantile = quantile;
      int found = 0;
      for (std::size_t i = 0; i < points_.size(); ++i) found += Ask(i) ? 1 : 0;
      EXPECT_EQ(found, losers) << members << " members, quantile " << quantile;
    }
  }
}

TEST_F(TruncationTest, EachOfTheBestIsAsLikely) {
  for (int i = 0; i < 8; ++i) Add(i);
  std::array<int, 8> times{};
  constexpr int kAsked = 20000;
  for (int i = 0; i < kAsked; ++i) ++times[Ask(7)->winner];
  EXPECT_EQ(times[0] + times[1], kAsked);
  // Five standard deviations of a fair coin.
  EXPECT_NEAR(times[0], kAsked / 2, 5 * std::sqrt(kAsked) / 2);
}

TEST_F(TruncationTest, ComparesAtEqualSteps) {
  const std::size_t behind = Add(0.5);
  const std::size_t ahead = Add(0.9);
  points_[ahead].push_back(
      {.step = 20, .value = 0.1, .at = {}});  // later, which does not count now
  EXPECT_FALSE(Ask(behind));
  const auto exploit = Ask(ahead);
  ASSERT_TRUE(exploit);
  EXPECT_EQ(exploit->winner, behind);
}

TEST_F(TruncationTest, WhoWaitedIsNotCompared) {
  const std::size_t waited = Add(0.9, 10);  // still in the first interval
  const std::size_t second = Add(0.5, 20);
  EXPECT_FALSE(Ask(second, 20)) << "it is alone";
  const std::size_t third = Add(0.4, 15);  // its newest value of the second one
  const auto exploit = Ask(second, 20);
  ASSERT_TRUE(exploit) << "trial " << waited << " does not stand in as the loser";
  EXPECT_EQ(exploit->winner, third);
}

TEST_F(TruncationTest, WhoHasEndedIsNotCompared) {
  const std::size_t member = Add(0.5);
  Add(0.1, 10, /*ended=*/true);
  EXPECT_FALSE(Ask(member));
}

TEST_F(TruncationTest, WhatDoesNotCountIsBadInBothDirections) {
  for (const Direction direction : {Direction::kMinimize, Direction::kMaximize}) {
    points_.clear();
    ended_.clear();
    const std::size_t bad = Add(NAN);
    const std::size_t good = Add(direction == Direction::kMinimize ? 1e300 : -1e300);
    const auto exploit = Ask(bad, 10, direction);
    ASSERT_TRUE(exploit);
    EXPECT_EQ(exploit->winner, good);
    EXPECT_FALSE(Ask(good, 10, direction));
    points_[good][0].value = NAN;
    EXPECT_FALSE(Ask(bad, 10, direction)) << "nobody is worth copying";
    EXPECT_FALSE(Ask(good, 10, direction));
  }
}

TEST_F(TruncationTest, NobodyTakesOverFromAnEqual) {
  Add(0.5);
  Add(0.5);
  EXPECT_FALSE(Ask(0));
  EXPECT_FALSE(Ask(1));
}

TEST_F(TruncationTest, OfEqualsTheLaterTrialIsBehind) {
  for (const double value : {0.5, 0.1, 0.5, 0.1}) Add(value);
  EXPECT_FALSE(Ask(0));
  const auto exploit = Ask(2);
  ASSERT_TRUE(exploit);
  EXPECT_EQ(exploit->winner, 1U);
}

TEST(ComparedAt, IsTheIntervalThatIsReached) {
  const PopulationSpec truncation{.interval = 500, .parameters = {}};
  EXPECT_EQ(ComparedAt(truncation, 0), 0);
  EXPECT_EQ(ComparedAt(truncation, 499), 0);
  EXPECT_EQ(ComparedAt(truncation, 500), 500);
  EXPECT_EQ(ComparedAt(truncation, 1499), 1000);
}

}  // namespace
}  // namespace espalier
