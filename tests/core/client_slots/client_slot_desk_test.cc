#include "tuner/core/client_slots/client_slot_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/parts_fixture.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr TrialId kTrial{1};        // which its client runs
constexpr TrialId kTrialOfPool{2};  // of a study that the tuner runs

// A study of either kind.
class ClientSlotDeskTest : public PartsFixture {
 protected:
  ClientSlotDeskTest() {
    observe_ = [this](const Change& change) { desk_.Observe(change); };
    StudySpec spec;
    spec.name = "by clients";
    spec.kind = StudyKind::kByClients;
    Create(StudyId(1), spec);
    turn_.Emit(TrialCreated{kTrial, StudyId(1), 0, {}, turn_.now()});
    turn_.Emit(TrialTold{kTrial, TrialState::kRunning, {}, turn_.now(), {}});
  }

  // A trial of the pool trains on both slots.
  void FillByPool(int min_slots) {
    StudySpec spec;
    spec.name = "by the tuner";
    spec.min_slots = min_slots;
    Create(StudyId(2), spec);
    Train(kTrialOfPool, StudyId(2));
  }

  const Trial& Own() { return turn_.TrialAt(kTrial); }
  StepResult Settle() {
    desk_.Check();
    desk_.Serve();
    desk_.Answer();
    return turn_.Finish();
  }

  ClientSlotDesk desk_{turn_, pool_, options_, promises_, trials_};
};

TEST_F(ClientSlotDeskTest, FreeSlotsAreGivenAtOnce) {
  desk_.Acquire(Own(), {kTrial, 1, "", 0});
  EXPECT_TRUE(turn_.reply().later());
  const StepResult result = Settle();
  EXPECT_THAT(result.late.at({.trial = kTrial}).slots(), ElementsAre(Slot{kNode, 0}));
  EXPECT_THAT(desk_.SlotsOf(kTrial), ElementsAre(Slot{kNode, 0}));
  EXPECT_THAT(pool_.held_by_clients, ElementsAre(Pair(Slot{kNode, 0}, kTrial)));
  EXPECT_EQ(desk_.KeptOn(kNode), 1);
}

TEST_F(ClientSlotDeskTest, ThePoolsTrialsMakeRoomForTheClientsPart) {
  FillByPool(/*min_slots=*/1);
  desk_.Acquire(Own(), {kTrial, 1, "", 10});
  EXPECT_THAT(Settle().late, IsEmpty()) << "waits";
  EXPECT_EQ(desk_.ReservedOn(kNode), 1);
  EXPECT_FALSE(pool_.groups.at(kTrialOfPool).pausing) << "it can shrink";
  pool_.groups[kTrialOfPool].target = {{kNode, 1}};
  pool_.replicas.erase(ReplicaId(2));
  EXPECT_THAT(Settle().late.at({.trial = kTrial}).slots(), ElementsAre(Slot{kNode, 1}));
  EXPECT_EQ(desk_.ReservedOn(kNode), 0);
}

TEST_F(ClientSlotDeskTest, ATrialThatCannotShrinkPausesForTheClientsPart) {
  FillByPool(/*min_slots=*/2);
  desk_.Acquire(Own(), {kTrial, 1, "", 10});
  Settle();
  EXPECT_EQ(desk_.ReservedOn(kNode), 1);
  EXPECT_TRUE(pool_.groups.at(kTrialOfPool).pausing);
  EXPECT_THAT(pool_.groups.at(kTrialOfPool).pause_reason, HasSubstr("a client waits for"));
}

TEST_F(ClientSlotDeskTest, WhatASilentClientHoldsIsGivenBack) {
  desk_.Acquire(Own(), {kTrial, 2, "", 0});
  Settle();
  ASSERT_EQ(desk_.SlotsWanted(), 2);
  turn_.Begin(After(turn_.now(), options_.slot_lease_s / 2));
  desk_.Renew(Own());
  turn_.Begin(After(turn_.now(), options_.slot_lease_s / 2));
  Settle();
  EXPECT_FALSE(desk_.empty()) << "it has spoken meanwhile";
  EXPECT_EQ(desk_.Next(), After(turn_.now(), options_.slot_lease_s / 2));
  turn_.Begin(*desk_.Next());
  Settle();
  EXPECT_TRUE(desk_.empty());
  EXPECT_THAT(pool_.held_by_clients, IsEmpty());
  EXPECT_EQ(desk_.Next(), std::nullopt);
}

TEST_F(ClientSlotDeskTest, ATrialsEndGivesBackWhenTheStepSettles) {
  desk_.Acquire(Own(), {kTrial, 1, "", 0});
  Settle();
  turn_.Emit(TrialTold{kTrial, TrialState::kComplete, {0.5}, {}, turn_.now()});
  EXPECT_FALSE(desk_.empty());
  Settle();
  EXPECT_TRUE(desk_.empty());
}

TEST_F(ClientSlotDeskTest, WhatCannotBeIsRefusedAtOnce) {
  desk_.Acquire(Own(), {kTrial, 3, "a", 0});
  EXPECT_THAT(std::string(turn_.reply().status.message()), HasSubstr("no node \"a\" has ever"));
  turn_.Emit(NodeRegistered{kNode, "a"});
  desk_.Acquire(Own(), {kTrial, 3, "a", 0});
  EXPECT_THAT(std::string(turn_.reply().status.message()), HasSubstr("has 2 slots, asked for 3"));
  EXPECT_TRUE(desk_.empty());
}

}  // namespace
}  // namespace espalier
