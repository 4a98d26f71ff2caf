#include "allocator/pool/share_account.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

constexpr StudyId kA{1};
constexpr StudyId kB{2};
constexpr StudyId kC{3};

StudyUse Wants(int held, int trial_slots = 1, double share = 1) {
  return {
      .share = share, .held = held, .wants_more = true, .trial_slots = trial_slots, .rigid = true};
}

TEST(ShareAccount, WhatOneHasHadMoreTheOthersAreOwed) {
  ShareAccount account;
  account.Advance(100, 4, {{kA, Wants(4)}, {kB, Wants(0, 4)}});
  EXPECT_EQ(account.Owed(kB), 0) << "nothing is known of the time before";
  account.Advance(110, 4, {{kA, Wants(0)}, {kB, Wants(4, 4)}});
  EXPECT_DOUBLE_EQ(account.Owed(kA), -20);
  EXPECT_DOUBLE_EQ(account.Owed(kB), 20);
  EXPECT_DOUBLE_EQ(account.OwedSeconds(kB), 10);
  account.Advance(125, 4, {{kA, Wants(4)}, {kB, Wants(0, 4)}});
  EXPECT_DOUBLE_EQ(account.Owed(kB), -10);
}

TEST(ShareAccount, SharesWeighAndSlotsThatNobodyHasAreNobodysDebt) {
  ShareAccount account;
  account.Advance(0, 4, {{kA, Wants(1, 1, 1)}, {kB, Wants(0, 4, 4)}});
  account.Advance(10, 4, {{kA, Wants(1, 1, 1)}, {kB, Wants(0, 4, 4)}});
  EXPECT_DOUBLE_EQ(account.Owed(kA), -8);
  EXPECT_DOUBLE_EQ(account.Owed(kB), 8);
}

StudyUse Content(int held) {
  StudyUse use = Wants(held);
  use.wants_more = false;
  return use;
}

TEST(ShareAccount, WhoWantsNoMoreThanItsPartNeitherOwesNorIsOwed) {
  ShareAccount account;
  const std::map<StudyId, StudyUse> uses = {{kA, Content(2)}, {kB, Wants(6)}, {kC, Wants(0, 4)}};
  account.Advance(0, 8, uses);
  account.Advance(10, 8, uses);
  EXPECT_EQ(account.Owed(kA), 0);
  EXPECT_DOUBLE_EQ(account.Owed(kC), 30);
  account.Advance(10, 8, {});
  EXPECT_EQ(account.Owed(kC), 0) << "forgotten";
}

TEST(ShareAccount, WhoHoldsMoreThanItsPartOwesItThoughItWantsNoMore) {
  ShareAccount account;
  const std::map<StudyId, StudyUse> uses = {{kA, Content(4)}, {kB, Wants(0, 4)}};
  account.Advance(0, 4, uses);
  EXPECT_TRUE(account.uneven());
  account.Advance(10, 4, uses);
  EXPECT_DOUBLE_EQ(account.Owed(kA), -20);
  EXPECT_DOUBLE_EQ(account.OwedSeconds(kB), 10);
}

TEST(ShareAccount, CountsOnlyWhileTurnsAreTakenAndWithALimit) {
  ShareAccount account;
  account.Advance(0, 16, {{kA, Wants(4)}, {kB, Wants(12)}});
  account.Advance(10'000, 16, {{kA, Wants(4)}, {kB, Wants(0, 16)}});
  EXPECT_EQ(account.Owed(kA), 0) << "slots were divided by what they are worth to each";
  account.Advance(20'000'000);
  EXPECT_DOUBLE_EQ(account.OwedSeconds(kB), 600);
}

TEST(ShareAccount, TurnsAreTakenWhereWholeTrialsDoNotComeNearToParts) {
  const auto uneven = [](int slots, const std::map<StudyId, StudyUse>& uses) {
    ShareAccount account;
    account.Advance(0, slots, uses);
    return account.uneven();
  };
  EXPECT_TRUE(uneven(4, {{kA, Wants(4)}, {kB, Wants(0, 4)}}));
  EXPECT_TRUE(uneven(4, {{kA, Wants(4)}, {kB, Wants(0, 3)}}));
  EXPECT_FALSE(uneven(4, {{kA, Wants(4)}, {kB, Wants(0, 2)}}));
  EXPECT_TRUE(uneven(4, {{kA, Wants(4, 1, 4)}, {kB, Wants(0, 2)}})) << "0.8 slots are no trial";
  EXPECT_TRUE(uneven(2, {{kA, Wants(1)}, {kB, Wants(1)}, {kC, Wants(0)}}));
  EXPECT_FALSE(uneven(400, {{kA, Wants(200)}, {kB, Wants(199, 3)}}));
  StudyUse elastic = Wants(3, 3);
  elastic.rigid = false;
  EXPECT_FALSE(uneven(8, {{kA, Wants(4)}, {kB, elastic}})) << "it grows into what is left";
  EXPECT_FALSE(uneven(4, {{kA, Wants(4)}}));
}

}  // namespace
}  // namespace espalier
