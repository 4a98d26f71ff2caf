#include "tuner/core/population/truncation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <vector>

#include "base/random.h"

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
  std::vector<Curve> Curves() const {
    std::vector<Curve> curves;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      Curve curve{.trial_number = static_cast<std::int64_t>(i), .points = points_[i]};
      curve.ended = ended_[i];
      curve.pruned = ended_[i] && !failed_.contains(i);
      curve.breaks = breaks_.contains(i);
      curves.push_back(curve);
    }
    return curves;
  }
  Ranking Rank(std::int64_t step = 10, Direction direction = Direction::kMinimize) const {
    return RankAt(truncation_, direction, Curves(), all_have_come_, step);
  }
  std::vector<std::size_t> Members(const std::vector<Ranking::Place>& places) const {
    std::vector<std::size_t> members;
    for (const Ranking::Place& place : places) members.push_back(place.member);
    return members;
  }
  std::vector<std::size_t> LosersNow() const { return Members(Losers(Rank(), Curves())); }
  // Whom the member takes over from.
  std::optional<std::size_t> Ask(std::size_t member, std::int64_t step = 10,
                                 Direction direction = Direction::kMinimize) {
    const Ranking ranking = Rank(step, direction);
    const std::vector<Ranking::Place> losers = Losers(ranking, Curves());
    const auto own = std::ranges::find(losers, member, &Ranking::Place::member);
    if (own == losers.end()) return std::nullopt;
    const std::vector<std::size_t> winners = WinnersOver(*own, ranking, direction, Curves());
    if (winners.empty()) return std::nullopt;
    return winners[random_.Below(winners.size())];
  }

  PopulationSpec truncation_{.interval = 10, .quantile = 0.25, .parameters = {}};
  std::vector<Points> points_;
  std::vector<bool> ended_;
  std::set<std::size_t> breaks_;
  std::set<std::size_t> failed_;  // of those that ended
  bool all_have_come_ = true;
  Random random_{7};
};

TEST_F(TruncationTest, WorstOfFourTakesOverFromBest) {
  for (const double value : {0.4, 0.1, 0.3, 0.2}) Add(value);
  EXPECT_EQ(Ask(0), 1U);
  for (const std::size_t other : {1U, 2U, 3U}) EXPECT_FALSE(Ask(other)) << other;
  EXPECT_EQ(Ask(1, 10, Direction::kMaximize), 0U);
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

// Whoever comes next may be worse, or better.
TEST_F(TruncationTest, UntilAllHaveComeEndsAreRoundedDown) {
  std::vector<std::size_t> ends;
  all_have_come_ = false;
  for (int i = 0; i < 8; ++i) {
    Add(i);
    ends.push_back(Rank().end);
  }
  EXPECT_THAT(ends, ::testing::ElementsAre(0, 0, 0, 1, 1, 1, 1, 2));
  truncation_.quantile = 0.3;
  EXPECT_EQ(Rank().end, 2U);
  all_have_come_ = true;
  EXPECT_EQ(Rank().end, 3U);
}

TEST_F(TruncationTest, EachOfTheBestIsAsLikely) {
  for (int i = 0; i < 8; ++i) Add(i);
  std::array<int, 8> times{};
  constexpr int kAsked = 20000;
  for (int i = 0; i < kAsked; ++i) ++times[*Ask(7)];
  EXPECT_EQ(times[0] + times[1], kAsked);
  // Five standard deviations of a fair coin.
  EXPECT_NEAR(times[0], kAsked / 2.0, 5 * std::sqrt(kAsked) / 2);
}

TEST_F(TruncationTest, ComparesAtEqualSteps) {
  const std::size_t behind = Add(0.5);
  const std::size_t ahead = Add(0.9);
  points_[ahead].push_back({.step = 20, .value = 0.6, .at = {}});
  EXPECT_FALSE(Ask(behind));
  EXPECT_EQ(Ask(ahead), behind);
  points_[ahead].back().value = 0.1;
  EXPECT_FALSE(Ask(ahead)) << "it has found its own way";
}

TEST_F(TruncationTest, WhoHasNotComeToTheStepIsNotCompared) {
  const std::size_t first = Add(0.9, 20);
  const std::size_t behind = Add(0.1, 19);
  EXPECT_FALSE(Ask(first, 20));
  points_[behind].push_back({.step = 20, .value = 0.2, .at = {}});
  EXPECT_EQ(Ask(first, 20), behind);
}

// One that reports every few steps comes to a multiple of the interval with the next report.
TEST_F(TruncationTest, WhatCountsIsTheNewestValueAtOrBeforeTheStep) {
  const std::size_t sparse = Add(0.9, 17);
  points_[sparse].push_back({.step = 23, .value = 0.8, .at = {}});
  const std::size_t other = Add(0.5, 20);
  EXPECT_EQ(Ask(sparse, 20), other);
}

TEST_F(TruncationTest, WhoHasToldNothingInTheIntervalIsNotCompared) {
  const std::size_t waited = Add(0.9, 10);
  points_[waited].push_back({.step = 21, .value = 0.9, .at = {}});
  const std::size_t second = Add(0.5, 20);
  EXPECT_THAT(Members(Rank(20).places), ::testing::ElementsAre(second));
}

TEST_F(TruncationTest, NoMoreAreReplacedThanTheEndHas) {
  for (int i = 0; i < 7; ++i) Add(i);
  Add(9);
  ASSERT_EQ(Rank().end, 2U);
  EXPECT_THAT(LosersNow(), ::testing::ElementsAre(7, 6));
  ended_[3] = true;  // it was among the worst while some had not come
  EXPECT_THAT(LosersNow(), ::testing::ElementsAre(7));
  ended_[7] = true;
  EXPECT_THAT(LosersNow(), ::testing::IsEmpty());
}

TEST_F(TruncationTest, WhoHasFailedIsNoMember) {
  for (int i = 0; i < 8; ++i) Add(i);
  for (const std::size_t failed : {std::size_t{3}, std::size_t{7}}) {
    ended_[failed] = true;
    failed_.insert(failed);
  }
  ASSERT_EQ(Rank().end, 2U) << "of six";
  EXPECT_THAT(LosersNow(), ::testing::ElementsAre(6, 5)) << "nobody has taken a place of theirs";
}

TEST_F(TruncationTest, WhoHasEndedIsNoWinner) {
  Add(0.1, 10, /*ended=*/true);
  const std::size_t second = Add(0.2);
  for (int i = 0; i < 5; ++i) Add(0.3 + i);
  const std::size_t last = Add(9);
  ASSERT_EQ(Rank().end, 2U);
  EXPECT_EQ(Ask(last), second);
}

TEST_F(TruncationTest, WhoBreaksAConstraintIsBehind) {
  const std::size_t breaks = Add(0.1);
  breaks_.insert(breaks);
  const std::size_t keeps = Add(0.5);
  EXPECT_EQ(Ask(breaks), keeps);
  EXPECT_FALSE(Ask(keeps));
  breaks_.insert(keeps);
  EXPECT_FALSE(Ask(keeps)) << "nobody is worth copying";
}

TEST_F(TruncationTest, WhatDoesNotCountIsBadInBothDirections) {
  for (const Direction direction : {Direction::kMinimize, Direction::kMaximize}) {
    points_.clear();
    ended_.clear();
    const std::size_t bad = Add(NAN);
    const std::size_t good = Add(direction == Direction::kMinimize ? 1e300 : -1e300);
    EXPECT_EQ(Ask(bad, 10, direction), good);
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
  EXPECT_EQ(Ask(2), 1U);
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
