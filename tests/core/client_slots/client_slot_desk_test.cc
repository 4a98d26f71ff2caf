#include "tuner/core/client_slots/client_slot_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr NodeId kNode{1};
constexpr TrialId kTrial{1};        // which its client runs
constexpr TrialId kTrialOfPool{2};  // of a study that the tuner runs

// A node of two slots, and a study of either kind.
class ClientSlotDeskTest : public ::testing::Test {
 protected:
  ClientSlotDeskTest() {
    turn_.Begin(TimeFromSeconds(100));
    StudySpec spec;
    spec.name = "by clients";
    spec.kind = StudyKind::kByClients;
    turn_.Emit(StudyCreated{StudyId(1), spec, turn_.now()});
    turn_.Emit(TrialCreated{kTrial, StudyId(1), 0, {}, turn_.now()});
    turn_.Emit(TrialTold{kTrial, TrialState::kRunning, {}, turn_.now(), {}});
    Node& node = pool_.nodes[kNode];
    node.id = kNode;
    node.name = "a";
    node.slots = 2;
    node.connected = true;
  }

  // A trial of the pool trains on both slots.
  void FillByPool() {
    StudySpec spec;
    spec.name = "by the tuner";
    turn_.Emit(StudyCreated{StudyId(2), spec, turn_.now()});
    turn_.Emit(TrialCreated{kTrialOfPool, StudyId(2), 0, {}, turn_.now()});
    Group& group = pool_.groups[kTrialOfPool];
    group.target = {{kNode, 2}};
    for (const int slot : {0, 1}) {
      const ReplicaId id(slot + 1);
      pool_.replicas.emplace(id, Replica(id, kTrialOfPool, kNode, slot));
      group.members.push_back(id);
    }
  }

  const Trial& Own() { return turn_.TrialAt(kTrial); }
  StepResult Settle() {
    desk_.Check();
    desk_.Serve();
    desk_.Answer();
    return turn_.Finish();
  }

  Turn turn_{TunerState{}, [this](const Change& change) {
               pool_.Observe(change);
               desk_.Observe(change);
             }};
  PoolState pool_{turn_};
  CoreOptions options_;
  std::vector<std::pair<NodeId, int>> room_;
  ClientSlotDesk desk_{turn_, pool_, options_,
                       [this](NodeId node, int left) { room_.emplace_back(node, left); }};
};

TEST_F(ClientSlotDeskTest, FreeSlotsAreGivenAtOnce) {
  desk_.Acquire(Own(), {kTrial, 1, "", 0});
  EXPECT_TRUE(turn_.reply().later());
  const StepResult result = Settle();
  EXPECT_THAT(result.late.at(kTrial).slots(), ElementsAre(Slot{kNode, 0}));
  EXPECT_THAT(desk_.SlotsOf(kTrial), ElementsAre(Slot{kNode, 0}));
  EXPECT_THAT(pool_.held_by_clients, ElementsAre(Pair(Slot{kNode, 0}, kTrial)));
  EXPECT_EQ(desk_.KeptOn(kNode), 1);
  EXPECT_THAT(room_, IsEmpty());
}

TEST_F(ClientSlotDeskTest, ThePoolsTrialsMakeRoomForTheClientsPart) {
  FillByPool();
  desk_.Acquire(Own(), {kTrial, 1, "", 10});
  EXPECT_THAT(Settle().late, IsEmpty()) << "waits";
  EXPECT_THAT(room_, ElementsAre(Pair(kNode, 1)));
  EXPECT_EQ(desk_.ReservedOn(kNode), 1);
  pool_.groups[kTrialOfPool].target = {{kNode, 1}};
  pool_.replicas.erase(ReplicaId(2));
  EXPECT_THAT(Settle().late.at(kTrial).slots(), ElementsAre(Slot{kNode, 1}));
  EXPECT_EQ(desk_.ReservedOn(kNode), 0);
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
