// Nodes that are to be emptied, and nodes of several kinds.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>

#include "tests/core/core_fixture.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

class DrainsTest : public CoreTest {
 protected:
  static ReplicaExited EndedByItsAgent(ReplicaId replica) {
    ReplicaExited exited{replica, /*exit_code=*/-1, SIGTERM, "", ""};
    exited.agent_stops = true;
    return exited;
  }

  // One elastic trial on the node "old" and nowhere else, with a group of one.
  ReplicaId TrainOn(const std::string& name, int max_slots = 0) {
    StudySpec spec = Spec(1);
    spec.max_slots = max_slots;
    Step(CreateStudy{spec, false});
    node_ = Join(name, 1);
    const ReplicaId first = Ready(starts_.at(0).replica);
    Form(regroups_);
    return first;
  }

  std::vector<ReplicaId> Members() {
    std::vector<ReplicaId> members;
    for (const Member& member : regroups_.at(0).membership.members)
      members.push_back(member.replica);
    return members;
  }

  NodeView View(NodeId id) {
    for (const NodeView& node : core_.Nodes()) {
      if (node.id == id) return node;
    }
    return {};
  }

  std::vector<NodeId> StartsOn() {
    std::vector<NodeId> nodes;
    for (const StartReplicaCommand& start : starts_) nodes.push_back(start.node);
    return nodes;
  }
};

TEST_F(DrainsTest, NothingNewStartsOnADrainedNode) {
  const NodeId old = Join("old", 2);
  const NodeId other = Join("other", 1);
  ASSERT_TRUE(Step(DrainNode{"old"}).status.ok());
  EXPECT_TRUE(View(old).draining);
  Step(CreateStudy{Spec(3), false});
  EXPECT_EQ(StartsOn(), std::vector{other});
  EXPECT_EQ(core_.state().trials.size(), 1u) << "no configuration is drawn for slots that go";
  Step(DrainNode{"old", true});
  EXPECT_EQ(StartsOn(), (std::vector{old, old}));
  EXPECT_TRUE(core_.state().drained.empty());
}

TEST_F(DrainsTest, ATrialMovesAsAWholeByGrowingFirst) {
  const ReplicaId first = TrainOn("old", /*max_slots=*/1);
  const NodeId other = Join("other", 1);
  Wait(3);
  Step(DrainNode{"old"});
  ASSERT_EQ(StartsOn(), std::vector{other});
  EXPECT_TRUE(regroups_.empty()) << "it trains on meanwhile";
  const ReplicaId second = starts_.at(0).replica;
  Ready(second);
  EXPECT_EQ(Members(), (std::vector{first, second})) << "who joins takes its state from who leaves";
  Form(regroups_);
  ASSERT_FALSE(regroups_.empty());
  EXPECT_EQ(Members(), std::vector{second});
  Form(regroups_);
  Step(ReplicaExited{first, 0, 0, "", ""});
  EXPECT_TRUE(View(node_).replicas.empty());
  EXPECT_EQ(trial().state, TrialState::kRunning);
  EXPECT_EQ(trial().restarts, 0);
}

TEST_F(DrainsTest, WithoutRoomElsewhereItPausesBeforeTheEnd) {
  const ReplicaId only = TrainOn("old");
  Step(AgentLeaving{node_, 300});
  EXPECT_TRUE(regroups_.empty()) << "there is time to train on";
  EXPECT_EQ(SecondsBetween(now_, *core_.NextDeadline()) <= 180, true);
  Wait(179);
  EXPECT_TRUE(regroups_.empty());
  Wait(2);
  ASSERT_EQ(regroups_.size(), 1u);
  EXPECT_TRUE(regroups_[0].membership.members.empty())
      << "a regroup to nobody: checkpoint and leave";
  Step(FromReplica{only, ReplicaCheckpoint{"/checkpoint"}});
  Step(ReplicaExited{only, 0, 0, "", ""});
  EXPECT_EQ(trial().state, TrialState::kPaused);
  EXPECT_THAT(trial().reason, HasSubstr("node old goes away"));
  EXPECT_TRUE(starts_.empty()) << "not on the node that goes";
  const NodeId other = Join("other", 1);
  EXPECT_EQ(StartsOn(), std::vector{other});
  EXPECT_EQ(trial().checkpoint, "/checkpoint");
}

TEST_F(DrainsTest, AGroupOnTwoNodesShrinksBeforeTheEnd) {
  const ReplicaId first = TrainOn("old");
  Join("other", 1);
  Wait(3);
  const ReplicaId second = Ready(starts_.at(0).replica);
  Form(regroups_);
  Step(AgentLeaving{node_, 20});
  for (int i = 0; i < 12 && regroups_.empty(); ++i) Wait(1);
  ASSERT_FALSE(regroups_.empty()) << "of 20 s, half are for moving";
  EXPECT_EQ(Members(), std::vector{second});
  Form(regroups_);
  Step(ReplicaExited{first, 0, 0, "", ""});
  EXPECT_EQ(trial().state, TrialState::kRunning);
}

TEST_F(DrainsTest, ALeavingNodeThatIsEmptyIsForgottenWithItsAgent) {
  const NodeId old = Join("old", 1);
  Step(AgentLeaving{old, 60});
  EXPECT_NEAR(SecondsBetween(now_, View(old).drain_ends), 60, 0.1);
  Step(AgentGone{old});
  EXPECT_TRUE(core_.Nodes().empty());
}

TEST_F(DrainsTest, WhatAnAgentEndsAsItLeavesHasNotFailed) {
  const ReplicaId only = TrainOn("old");
  Step(AgentLeaving{node_, 10});
  Step(EndedByItsAgent(only));
  EXPECT_EQ(trial().state, TrialState::kPaused);
  EXPECT_TRUE(starts_.empty()) << "not on the node whose agent ends";
  const NodeId other = Join("other", 1);
  EXPECT_EQ(StartsOn(), std::vector{other});
  EXPECT_EQ(trial().restarts, 0);
}

TEST_F(DrainsTest, OthersGoOnWithoutTheMemberWhoseAgentEnds) {
  const ReplicaId first = TrainOn("old");
  Join("other", 1);
  Wait(3);
  const ReplicaId second = Ready(starts_.at(0).replica);
  Form(regroups_);
  Step(EndedByItsAgent(first));
  ASSERT_FALSE(regroups_.empty());
  EXPECT_EQ(Members(), std::vector{second});
  EXPECT_EQ(trial().state, TrialState::kRunning);
}

TEST_F(DrainsTest, AUsersDrainOutlivesTheAgentAndTheService) {
  Join("old", 1);
  Step(DrainNode{"old"});
  Core restarted(core_.state(), CoreOptions{});
  restarted.Step(now_, AgentHello{"old", 1, {}});
  EXPECT_TRUE(restarted.Nodes().at(0).draining);
  EXPECT_THAT(std::string(Step(DrainNode{"new"}).status.message()), HasSubstr("\"new\""));
}

TEST_F(DrainsTest, ALimitIsThirtyYearsAtTheMost) {
  TrainOn("old");
  for (const double within_s : {-1.0, 1e13, HUGE_VAL, std::nan("")}) {
    const Reply reply = Step(DrainNode{"old", false, within_s});
    EXPECT_TRUE(absl::IsInvalidArgument(reply.status)) << within_s;
    EXPECT_THAT(std::string(reply.status.message()), HasSubstr("0 (no limit) to 1e+09 seconds"));
  }
  EXPECT_FALSE(View(node_).draining);
  EXPECT_TRUE(Step(DrainNode{"old", false, kMaxTime_s}).status.ok());
  EXPECT_TRUE(View(node_).draining);
  EXPECT_TRUE(regroups_.empty()) << "there is time to train on";
}

TEST_F(DrainsTest, ATrialHoldsSlotsOfOneTypeOnly) {
  TrainOn("a");
  AgentHello other{"b", 1, {}};
  other.gpu_type = "H200";
  other.spot = true;
  other.price_per_hour = 3.5;
  const NodeId id = Step(other).node();
  Wait(3);
  EXPECT_TRUE(starts_.empty()) << "it grows on slots like its own";
  EXPECT_EQ(View(id).gpu_type, "H200");
  EXPECT_TRUE(View(id).spot);
  EXPECT_EQ(View(id).price_per_hour, 3.5);
  Step(other);
  other.price_per_hour = 3;
  Step(other);
  const auto& told = core_.state().node_terms;
  EXPECT_EQ(told.size(), 1u) << "of nodes that cost nothing and stay there is nothing to tell";
  ASSERT_EQ(told.at(id).size(), 2u);
  EXPECT_EQ(told.at(id).front().price_per_hour, 3.5);
  EXPECT_EQ(told.at(id).back().price_per_hour, 3);
}

}  // namespace
}  // namespace espalier
