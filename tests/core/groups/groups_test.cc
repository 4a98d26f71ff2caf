#include "tuner/core/groups/groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/parts_fixture.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// A trial that trains on two slots of one node.
class GroupsTest : public PartsFixture {
 protected:
  static constexpr StudyId kStudy{1};
  static constexpr TrialId kTrial{1};

  GroupsTest() {
    StudySpec spec;
    spec.name = "s";
    spec.timeouts.stall_s = 30;
    Create(kStudy, spec);
    Train(kTrial, kStudy);
    turn_.Finish();
  }

  Group& group() { return pool_.groups.at(kTrial); }
  Replica& replica(std::int64_t id) { return pool_.replicas.at(ReplicaId(id)); }
};

TEST_F(GroupsTest, ARegroupIsToldToThoseThatStayAndThoseThatLeave) {
  groups_.Regroup(kTrial, {ReplicaId(1)}, /*abandon=*/false, /*after_loss=*/false);
  const StepResult result = turn_.Finish();
  ASSERT_THAT(result.commands, SizeIs(2));
  for (const Command& command : result.commands) {
    const auto& regroup = std::get<RegroupCommand>(command);
    EXPECT_EQ(regroup.membership.generation, 1);
    EXPECT_THAT(regroup.membership.members, SizeIs(1));
  }
  EXPECT_FALSE(replica(1).leaving);
  EXPECT_TRUE(replica(2).leaving);
  EXPECT_EQ(replica(2).deadline(), After(turn_.now(), 30)) << "then it is stopped";
  EXPECT_TRUE(group().forming);
  EXPECT_THAT(group().awaited, ElementsAre(ReplicaId(1)));
  EXPECT_EQ(group().replicas_before, 2);
}

TEST_F(GroupsTest, ARegroupThatOvertakesAnotherCountsFromWhoTrainedLast) {
  groups_.Regroup(kTrial, {ReplicaId(1)}, /*abandon=*/true, /*after_loss=*/true);
  groups_.Regroup(kTrial, {ReplicaId(1)}, /*abandon=*/false, /*after_loss=*/false);
  EXPECT_EQ(group().replicas_before, 2);
  EXPECT_TRUE(group().after_loss);
  EXPECT_EQ(turn_.TrialAt(kTrial).generation, 2);
  groups_.FinishForming(kTrial);
  EXPECT_FALSE(group().forming);
  ASSERT_THAT(turn_.TrialAt(kTrial).resizes, SizeIs(1));
  EXPECT_EQ(turn_.TrialAt(kTrial).resizes.back().from_replicas, 2);
  EXPECT_EQ(turn_.TrialAt(kTrial).resizes.back().to_replicas, 1);
}

TEST_F(GroupsTest, AGroupIsGivenTheLongerTheLongerItsStepsAre) {
  EXPECT_EQ(groups_.StallOf(kTrial), 30);
  group().step_time_s = 5;
  EXPECT_EQ(groups_.StallOf(kTrial), 50);
  groups_.Regroup(kTrial, {ReplicaId(1)}, /*abandon=*/false, /*after_loss=*/false);
  EXPECT_FALSE(groups_.Stalls(kTrial, group()));
  turn_.Begin(After(turn_.now(), 50));
  EXPECT_TRUE(groups_.Stalls(kTrial, group()));
}

TEST_F(GroupsTest, NewReplicasGetIdsAboveAllThatAgentsKnow) {
  groups_.NoteReplica(ReplicaId(2500));
  group().target = {{kNode, 2}};
  pool_.replicas.erase(ReplicaId(2));
  groups_.StartReplica(turn_.TrialAt(kTrial), kNode, 1);
  EXPECT_TRUE(pool_.replicas.contains(ReplicaId(2501)));
  EXPECT_GT(turn_.state().replica_ids_below, 2501) << "on record before it is used";
}

}  // namespace
}  // namespace espalier
