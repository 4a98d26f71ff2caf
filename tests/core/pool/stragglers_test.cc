#include "tuner/core/pool/stragglers.h"

#include <gtest/gtest.h>

#include <vector>

namespace espalier {
namespace {

// A group whose replica i takes paces[i] seconds a step, told once a second.
class StragglersTest : public ::testing::Test {
 protected:
  std::optional<Straggler> Look(const std::vector<double>& paces, std::int64_t steps = 10) {
    now_ = After(now_, 1);
    std::vector<ReplicaTime> times;
    for (std::size_t i = 0; i < paces.size(); ++i) {
      times.push_back({ReplicaId(static_cast<std::int64_t>(i) + 1), steps,
                       paces[i] * static_cast<double>(steps)});
    }
    return detector_.Observe(now_, times);
  }

  // Looks until there is a verdict; how many it took, 0 if `most` were not enough.
  int LooksUntilFound(const std::vector<double>& paces, int most = 20) {
    for (int i = 1; i <= most; ++i) {
      if ((found_ = Look(paces))) return i;
    }
    return 0;
  }

  StragglerDetector detector_;
  Time now_{1'000'000};
  std::optional<Straggler> found_;
};

TEST_F(StragglersTest, FindsTheSlowOneAfterFiveLooks) {
  EXPECT_EQ(LooksUntilFound({0.01, 0.031, 0.01, 0.01}), 5);
  ASSERT_TRUE(found_);
  EXPECT_EQ(found_->replica, ReplicaId(2));
  EXPECT_NEAR(found_->ratio, 3.1, 1e-9);
}

TEST_F(StragglersTest, OfTwoEachIsComparedWithTheOther) {
  EXPECT_EQ(LooksUntilFound({0.01, 0.016}), 5);
  EXPECT_EQ(found_->replica, ReplicaId(2));
}

TEST_F(StragglersTest, EqualOrALittleSlowerIsNone) {
  EXPECT_EQ(LooksUntilFound({0.01, 0.0149, 0.01, 0.011}), 0);
  EXPECT_EQ(LooksUntilFound({0.01}), 0) << "nobody to compare with";
  EXPECT_EQ(LooksUntilFound({0, 0}), 0) << "no times are no verdict";
}

TEST_F(StragglersTest, SuspectsAtOnceAndForgets) {
  detector_.Reset(now_);
  EXPECT_FALSE(detector_.suspects());
  EXPECT_FALSE(Look({0.01, 0.02})) << "before the group has settled";
  EXPECT_TRUE(detector_.suspects());
  Look({0.01, 0.012});
  EXPECT_FALSE(detector_.suspects());
  Look({0.01, 0.02}, /*steps=*/1);
  EXPECT_FALSE(detector_.suspects()) << "of too few steps";
  Look({0.01, 0.02, 0.01});
  EXPECT_TRUE(detector_.suspects());
  detector_.Reset(now_);
  EXPECT_FALSE(detector_.suspects());
}

TEST_F(StragglersTest, OneLongStepIsNotEnough) {
  for (int round = 0; round < 5; ++round) {
    EXPECT_FALSE(Look({0.01, 5.0, 0.01}));
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(Look({0.01, 0.02, 0.01}));
    EXPECT_FALSE(Look({0.01, 0.01, 0.01})) << "the row is broken";
  }
}

TEST_F(StragglersTest, TheSlowestOfSeveralComesFirst) {
  EXPECT_EQ(LooksUntilFound({0.01, 0.03, 0.01, 0.05, 0.01}), 5);
  EXPECT_EQ(found_->replica, ReplicaId(4));
}

TEST_F(StragglersTest, LongStepsAreGatheredUntilThereAreEnough) {
  for (int i = 0; i < 14; ++i) EXPECT_FALSE(Look({1.0, 2.0}, 1)) << i;
  EXPECT_TRUE(Look({1.0, 2.0}, 1)) << "three steps a look, five looks";
}

TEST_F(StragglersTest, NobodyIsJudgedRightAfterARegroup) {
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(Look({0.01, 0.05}));
  detector_.Reset(now_);
  const int settling = static_cast<int>(kStragglerSettle_s) - 1;
  EXPECT_EQ(LooksUntilFound({0.01, 0.05}), settling + 5);
}

TEST_F(StragglersTest, AnotherMembershipStartsAnew) {
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(Look({0.01, 0.05}));
  EXPECT_FALSE(Look({0.01, 0.05, 0.01}));
  EXPECT_EQ(LooksUntilFound({0.01, 0.05, 0.01}), 4);
}

TEST_F(StragglersTest, GoingOnWithoutItPaysWhenTheOthersHaveTimeToSpare) {
  EXPECT_FALSE(FasterWithout(2, 1.9)) << "alone, the other computes twice as much";
  EXPECT_TRUE(FasterWithout(2, 2.2));
  EXPECT_FALSE(FasterWithout(3, 1.5));
  EXPECT_TRUE(FasterWithout(3, 1.6));
  EXPECT_TRUE(FasterWithout(8, 1.51));
  EXPECT_FALSE(FasterWithout(1, 9)) << "there must be somebody left";
}

}  // namespace
}  // namespace espalier
