#include <gtest/gtest.h>

#include "tests/core/parts_fixture.h"
#include "tuner/core/agents/replica_watch.h"
#include "tuner/core/checkpoints/checkpoints.h"

namespace espalier {
namespace {

// A trial that trains on both slots of a node, one of them slow. A second node is full, a third one
// has room for one replica.
class SlowReplicasTest : public PartsFixture {
 protected:
  static constexpr StudyId kStudy{1};
  static constexpr TrialId kTrial{1};
  static constexpr NodeId kFull{2};
  static constexpr NodeId kSpare{3};

  SlowReplicasTest() {
    StudySpec spec;
    spec.name = "s";
    Create(kStudy, spec);
    Train(kTrial, kStudy);
    groups_.NoteReplica(ReplicaId(2));
    AddNode(kFull, "b", 2);
    for (const int slot : {0, 1}) pool_.held_by_clients[{kFull, slot}] = TrialId(2);
    AddNode(kSpare, "c", 1);
    turn_.Finish();
  }

  void AddNode(NodeId id, const std::string& name, int slots) {
    Node& node = pool_.nodes[id];
    node.id = id;
    node.name = name;
    node.slots = slots;
    node.connected = true;
  }

  // More looks than it takes to be sure of a straggler.
  void TrainWithAStraggler() {
    ReplicaProgress progress;
    progress.replica_times = {{ReplicaId(1), 10, 0.1}, {ReplicaId(2), 10, 0.4}};
    for (int look = 0; look < 10; ++look) {
      turn_.Begin(After(turn_.now(), 1));
      watch_.On(FromReplica{ReplicaId(1), progress});
      turn_.Finish();
    }
  }

  Group& group() { return pool_.groups.at(kTrial); }

  Checkpoints checkpoints_{turn_, pool_, options_, copies_, groups_, trials_};
  FailedStarts failed_starts_{turn_, pool_};
  LaunchedGroups launched_{turn_, pool_, groups_};
  ReplicaWatch watch_{turn_,   pool_,        joins_,  groups_,   launched_,
                      trials_, checkpoints_, speeds_, promises_, failed_starts_};
};

TEST_F(SlowReplicasTest, AStragglerIsReplacedWhereASlotIsFree) {
  TrainWithAStraggler();
  EXPECT_EQ(group().replaced, ReplicaId(2));
  EXPECT_EQ(group().target, (Placement{{kNode, 1}, {kSpare, 1}}));
  EXPECT_EQ(pool_.PlacementOf(kTrial), (Placement{{kNode, 2}, {kSpare, 1}})) << "it joins first";
}

TEST_F(SlowReplicasTest, ATrialThatWaitsForRoomElsewhereReplacesNobody) {
  group().target = {{kFull, 2}};
  TrainWithAStraggler();
  EXPECT_EQ(group().replaced, ReplicaId());
  EXPECT_EQ(group().target, (Placement{{kFull, 2}}));
  EXPECT_EQ(pool_.replicas.size(), 2U);
  group().target = {{kNode, 2}};
  TrainWithAStraggler();
  EXPECT_EQ(group().replaced, ReplicaId(2)) << "once it is to stay";
}

}  // namespace
}  // namespace espalier
