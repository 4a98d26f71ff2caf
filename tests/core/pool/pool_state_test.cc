#include "tuner/core/pool/pool_state.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

class PoolStateTest : public ::testing::Test {
 protected:
  PoolStateTest() {
    pool_.nodes[kNode].id = kNode;
    pool_.nodes[kNode].slots = 3;
    pool_.nodes[kNode].connected = true;
  }
  void Start(std::int64_t replica, int slot) {
    pool_.replicas.emplace(ReplicaId(replica),
                           Replica(ReplicaId(replica), TrialId(1), kNode, slot));
  }

  // For a trial that has none.
  std::optional<int> Free() { return pool_.FreeSlot(kNode, TrialId(9)); }

  static constexpr NodeId kNode{1};
  Turn turn_{TunerState{}, [this](const Change& change) { pool_.Observe(change); }};
  PoolState pool_{turn_};
};

TEST_F(PoolStateTest, ASlotIsFreeThatNeitherAReplicaNorAClientIsOn) {
  EXPECT_EQ(Free(), 0);
  Start(1, 0);
  pool_.held_by_clients[{kNode, 1}] = TrialId(2);
  EXPECT_EQ(Free(), 2);
  EXPECT_EQ(pool_.SlotsHeldOn(kNode), 2);
  Start(2, 2);
  EXPECT_EQ(Free(), std::nullopt);
  EXPECT_EQ(pool_.FreeSlot(NodeId(2), TrialId(9)), std::nullopt) << "there is no such node";
}

TEST_F(PoolStateTest, AFirstProcessHoldsAllSlotsOfItsTrial) {
  pool_.nodes[kNode].slots = 5;
  Start(1, 1);
  pool_.replicas.at(ReplicaId(1)).more_slots = {2, 4};
  EXPECT_EQ(Free(), 0);
  EXPECT_EQ(pool_.FreeSlots(kNode, TrialId(9), 2), (std::vector<int>{0, 3}));
  EXPECT_EQ(pool_.FreeSlots(kNode, TrialId(9), 3), std::vector<int>{}) << "all or none";
  EXPECT_EQ(pool_.SlotsHeldOn(kNode), 3);
  EXPECT_EQ(pool_.SlotsHeldBy(TrialId(1)), 3);
  EXPECT_EQ(pool_.PlacementOf(TrialId(1)), (Placement{{kNode, 3}}));
  pool_.replicas.at(ReplicaId(1)).more_slots.clear();
  EXPECT_EQ(pool_.FreeSlots(kNode, TrialId(9), 3), (std::vector<int>{0, 2, 3}));
}

TEST_F(PoolStateTest, SlotsThatAreTakenTogetherAreOnGpusOfTheirOwnAsFarAsThereAreAny) {
  pool_.nodes[kNode].slots = 6;
  pool_.nodes[kNode].gpus = 3;  // slots 0 and 3 share one
  pool_.held_by_clients[{kNode, 0}] = TrialId(2);
  EXPECT_EQ(pool_.FreeSlots(kNode, TrialId(9), 4), (std::vector<int>{1, 2, 3, 4}));
  pool_.held_by_clients[{kNode, 1}] = TrialId(2);
  EXPECT_EQ(pool_.FreeSlots(kNode, TrialId(9), 3), (std::vector<int>{2, 3, 4}));
}

TEST_F(PoolStateTest, ASlowSlotIsTheLastToBeTaken) {
  turn_.Begin(TimeFromSeconds(100));
  pool_.slow_slots[{kNode, 0}] = TimeFromSeconds(200);
  EXPECT_EQ(Free(), 1);
  EXPECT_EQ(pool_.FreeSlowSlots(kNode), 1);
  Start(1, 1);
  Start(2, 2);
  EXPECT_EQ(Free(), 0) << "rather than none";
  turn_.Begin(TimeFromSeconds(300));
  EXPECT_FALSE(pool_.IsSlow({kNode, 0})) << "for a while only";
}

TEST_F(PoolStateTest, ATrialGetsASlotOnAGpuThatItDoesNotHaveYet) {
  pool_.nodes[kNode].slots = 4;
  pool_.nodes[kNode].gpus = 2;  // slots 0 and 2 share one
  Start(1, 0);
  EXPECT_EQ(Free(), 1);
  EXPECT_EQ(pool_.FreeSlot(kNode, TrialId(1)), 1);
  pool_.held_by_clients[{kNode, 1}] = TrialId(2);
  EXPECT_EQ(Free(), 2);
  EXPECT_EQ(pool_.FreeSlot(kNode, TrialId(1)), 3);
  EXPECT_EQ(pool_.FreeSlot(kNode, TrialId(2)), 2);
  pool_.held_by_clients[{kNode, 3}] = TrialId(3);
  EXPECT_EQ(pool_.FreeSlot(kNode, TrialId(1)), 2) << "rather than none";
  EXPECT_EQ(pool_.OnGpusOfItsOwn({{kNode, 4}}, 1), (Placement{{kNode, 2}}));
  EXPECT_EQ(pool_.OnGpusOfItsOwn({{kNode, 4}}, 3), (Placement{{kNode, 3}})) << "its least";
  pool_.nodes[kNode].gpus = 0;
  EXPECT_EQ(pool_.OnGpusOfItsOwn({{kNode, 4}}, 1), (Placement{{kNode, 4}})) << "CPU slots";
}

TEST_F(PoolStateTest, ASlotIsHeldBackForAWhile) {
  turn_.Begin(TimeFromSeconds(100));
  pool_.HoldBack(kNode, {1}, TimeFromSeconds(200), "broken");
  pool_.SetUnusable(pool_.nodes[kNode], {{2, "lost"}});
  EXPECT_EQ(pool_.nodes[kNode].unusable, (std::map<int, std::string>{{1, "broken"}, {2, "lost"}}));
  EXPECT_EQ(pool_.NextRelease(), TimeFromSeconds(200));
  pool_.ReleaseHeldBack();
  EXPECT_FALSE(pool_.Usable({kNode, 1}));
  turn_.Begin(TimeFromSeconds(200));
  pool_.ReleaseHeldBack();
  EXPECT_TRUE(pool_.Usable({kNode, 1}));
  EXPECT_FALSE(pool_.Usable({kNode, 2})) << "so its agent says";
  EXPECT_EQ(pool_.NextRelease(), std::nullopt);
}

TEST_F(PoolStateTest, ANodeThatDrainsIsPlannedForNoMore) {
  pool_.groups[TrialId(1)].target = {{kNode, 1}};  // without a replica
  pool_.groups[TrialId(2)].target = {{NodeId(2), 1}};
  Node& node = pool_.nodes[kNode];
  node.releasing = true;
  pool_.UpdateDrain(node, "the pool shrinks");
  EXPECT_TRUE(pool_.Draining(kNode));
  EXPECT_EQ(pool_.groups.count(TrialId(1)), 0u);
  EXPECT_EQ(pool_.groups.count(TrialId(2)), 1u);
  node.releasing = false;
  pool_.UpdateDrain(node, "");
  EXPECT_FALSE(pool_.Draining(kNode));
  EXPECT_TRUE(pool_.draining.empty());
}

TEST_F(PoolStateTest, ATrialLivesUntilItEndsOrItsStudyIsDeleted) {
  StudySpec spec;
  spec.name = "s";
  turn_.Emit(StudyCreated{StudyId(1), spec, Time{}});
  for (const std::int64_t id : {1, 2}) {
    turn_.Emit(TrialCreated{TrialId(id), StudyId(1), id - 1, {}, Time{}});
    pool_.groups[TrialId(id)];
  }
  EXPECT_EQ(pool_.live.size(), 2u);
  EXPECT_EQ(pool_.studies.count(StudyId(1)), 1u);
  turn_.Emit(TrialStateChanged{TrialId(1), TrialState::kFail, Time{}, "", std::nullopt, ""});
  EXPECT_EQ(pool_.live.count(TrialId(1)), 0u);
  EXPECT_EQ(pool_.groups.count(TrialId(1)), 0u);
  EXPECT_EQ(pool_.live.count(TrialId(2)), 1u);
  pool_.SlotsChange(TrialId(2));
  turn_.Emit(StudyDeleted{StudyId(1), turn_.state().last_study, turn_.state().last_trial});
  EXPECT_TRUE(pool_.live.empty());
  EXPECT_TRUE(pool_.groups.empty());
  EXPECT_TRUE(pool_.slots_touched.empty()) << "there is no record to write it to";
  EXPECT_TRUE(pool_.studies.empty());
}

}  // namespace
}  // namespace espalier
