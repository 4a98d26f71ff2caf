// Replicas that are slow, that hang, nodes that cannot talk, and groups that cannot reach one
// another.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/core_fixture.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

class FaultsTest : public CoreTest {
 protected:
  // A second of training in which each replica takes so long a step.
  void Train(const std::vector<ReplicaId>& replicas, const std::vector<double>& step_times_s) {
    ReplicaProgress progress;
    progress.generation = trial().generation;
    progress.step = ++step_;
    progress.global_batch_size = 64;
    for (std::size_t i = 0; i < replicas.size(); ++i) {
      progress.replica_times.push_back({replicas[i], 10, 10 * step_times_s[i]});
    }
    now_ = After(now_, 1);
    Step(FromReplica{replicas.at(0), progress});
  }

  // Trains until the core does something about it.
  void TrainUntilCommands(const std::vector<ReplicaId>& replicas,
                          const std::vector<double>& step_times_s) {
    for (int i = 0; i < 30; ++i) {
      Train(replicas, step_times_s);
      if (!starts_.empty() || !regroups_.empty()) return;
    }
    FAIL() << "nothing was done";
  }

  void SayStuck(ReplicaId replica) {
    Step(FromReplica{replica, ReplicaStuck{trial().generation, 5}});
  }

  // Its attempts to reach the others failed so.
  void SayOutOfReach(ReplicaId replica, const std::vector<ReplicaId>& others,
                     Contact contact = Contact::kRefused) {
    ReplicaStuck stuck{trial().generation, 5};
    for (const ReplicaId other : others) {
      stuck.contacts.push_back({other, "10.0.0.2:4711", contact, "Connection refused"});
    }
    Step(FromReplica{replica, stuck});
  }

  // A trial that trains on node "first", and its joiner on node "second", told to form a group.
  std::pair<ReplicaId, ReplicaId> GrowsOntoAnotherNode() {
    Step(CreateStudy{TwoSlotSpec(), false});
    Join("first", 1);
    const ReplicaId trained = Ready(starts_.at(0).replica);
    Form(regroups_);
    second_ = Join("second", 1);
    Wait(3);
    const ReplicaId joiner = Ready(starts_.at(0).replica);
    EXPECT_EQ(Members(), (std::vector{trained, joiner}));
    return {trained, joiner};
  }

  std::vector<Decision> DecisionsAbout(const std::string& text) {
    std::vector<Decision> found;
    for (const Decision& decision : study().decisions) {
      if (decision.reason.find(text) != std::string::npos) found.push_back(decision);
    }
    return found;
  }

  std::vector<ReplicaId> Members() {
    std::vector<ReplicaId> members;
    for (const Member& member : regroups_.at(0).membership.members)
      members.push_back(member.replica);
    return members;
  }

  StudySpec TwoSlotSpec() {
    StudySpec spec = Spec(1);
    spec.max_slots = 2;
    return spec;
  }

  // A trial that is pinned to three slots: two on node "large", one on node "small".
  std::vector<ReplicaId> ThreeOnTwoNodes() {
    Step(CreateStudy{Spec(1), false});
    large_ = Join("large", 2);
    Ready(starts_.at(0).replica);
    std::vector<ReplicaId> members = Members();
    Form(regroups_);
    Join("small", 1);
    Step(PinTrial{"s", 0, 3});
    const auto joiners = starts_;
    for (const StartReplicaCommand& start : joiners) members.push_back(Ready(start.replica));
    EXPECT_EQ(Members(), members);
    Form(regroups_);
    return members;
  }

  NodeId large_, second_;
  std::int64_t step_ = 0;
};

// ---- The last replica ends before there is a checkpoint ----------------------------------------

// As by the system, for want of memory.
TEST_F(FaultsTest, WhoTrainedAndWasKilledStartsFromTheBeginning) {
  StudySpec spec = Spec(1);
  spec.max_restarts = 1000;  // of which two may begin from nothing
  Step(CreateStudy{spec, false});
  Join(1);
  for (int restarts = 0; restarts <= 2; ++restarts) {
    ASSERT_EQ(starts_.size(), 1u);
    EXPECT_FALSE(starts_[0].from.known());
    EXPECT_EQ(trial().restarts, restarts);
    const ReplicaId replica = Ready(starts_[0].replica);
    Form(regroups_);
    Train({replica}, {0.01});
    Step(ReplicaExited{replica, -1, 9, "", ""});
  }
  EXPECT_EQ(trial().state, TrialState::kFail);
  EXPECT_EQ(DecisionsAbout("the last replica was killed by signal 9; starts from the beginning, "
                           "for want of a checkpoint (restart 2 of 2)")
                .size(),
            1u);
}

TEST_F(FaultsTest, WhoFailedByItselfOrHadNotTrainedHasFailed) {
  Step(CreateStudy{Spec(2), false});
  Join(1);
  const ReplicaId failed = Ready(starts_.at(0).replica);
  Form(regroups_);
  Train({failed}, {0.01});
  Step(ReplicaExited{failed, 1, 0, "", ""});
  EXPECT_EQ(trial(1).state, TrialState::kFail);
  const ReplicaId untrained = Ready(starts_.at(0).replica);
  Form(regroups_);
  Step(ReplicaExited{untrained, -1, 9, "", ""});
  EXPECT_EQ(trial(2).state, TrialState::kFail);
}

// ---- Stragglers ------------------------------------------------------------------------------

TEST_F(FaultsTest, AStragglerIsReplacedOnAnotherNodeWhileTheGroupTrainsOn) {
  const auto replicas = TwoReplicas(TwoSlotSpec(), 3);
  const NodeId other = Join("other", 1);
  TrainUntilCommands(replicas, {0.01, 0.031});
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].node, other) << "although its own node has a free slot too";
  EXPECT_TRUE(regroups_.empty()) << "nobody is disturbed before the successor says Ready";
  ASSERT_EQ(DecisionsAbout("takes 3.1x as long a step as the others").size(), 1u);
  const Decision decision = DecisionsAbout("takes 3.1x")[0];
  EXPECT_EQ(decision.kind, DecisionKind::kMove);
  EXPECT_EQ(decision.reason,
            "replica on node slot 1 takes 3.1x as long a step as the others: replaced by other "
            "slot 0");

  const ReplicaId successor = starts_[0].replica;
  Train(replicas, {0.01, 0.031});
  EXPECT_TRUE(starts_.empty() && regroups_.empty()) << "it is being replaced already";
  Ready(successor);
  EXPECT_EQ(regroups_.size(), 3u) << "who stays, who comes and who leaves are told";
  EXPECT_EQ(Members(), (std::vector{replicas[0], successor}));
  EXPECT_FALSE(regroups_[0].membership.abandon);
  Form(regroups_);
  Step(ReplicaExited{replicas[1], 0, 0, "", ""});
  EXPECT_EQ(core_.Activity(TrialId(1)).replicas, 2);
  Wait(10);
  EXPECT_TRUE(starts_.empty() && regroups_.empty() && stops_.empty());
  EXPECT_EQ(trial().restarts, 0);
}

TEST_F(FaultsTest, AStragglerIsReplacedOnItsOwnNodeIfNoOtherHasRoom) {
  const auto replicas = TwoReplicas(TwoSlotSpec(), 3);
  TrainUntilCommands(replicas, {0.05, 0.01});
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].slot, 2) << "not the slow slot";
  const ReplicaId successor = Ready(starts_[0].replica);
  EXPECT_EQ(Members(), (std::vector{replicas[1], successor})) << "also rank 0 can be slow";
  Form(regroups_);
  Step(ReplicaExited{replicas[0], 0, 0, "", ""});
  // The successor is slow too: the first slot is free again, but known to be slow.
  for (int i = 0; i < 20; ++i) {
    Train({replicas[1], successor}, {0.01, 0.016});
    EXPECT_TRUE(starts_.empty() && regroups_.empty());
  }
  EXPECT_EQ(DecisionsAbout("no slot is free to replace it").size(), 1u) << "said once";
}

TEST_F(FaultsTest, WithoutAFreeSlotTheOthersGoOnIfTheyAreFasterAlone) {
  const auto replicas = TwoReplicas();
  TrainUntilCommands(replicas, {0.01, 0.03});
  EXPECT_TRUE(starts_.empty());
  EXPECT_EQ(Members(), std::vector{replicas[0]});
  const auto decisions = DecisionsAbout("takes 3.0x");
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(decisions[0].kind, DecisionKind::kShrink);
  EXPECT_EQ(decisions[0].to_slots, 1);
  Form(regroups_);
  Step(ReplicaExited{replicas[1], 0, 0, "", ""});
  Wait(60);
  EXPECT_TRUE(starts_.empty()) << "it does not grow into the slow slot again";
  Wait(600);
  EXPECT_EQ(starts_.size(), 1u) << "after a while the slot gets another chance";
}

TEST_F(FaultsTest, ASlowSlotIsGoodEnoughForATrialThatHasNone) {
  const auto replicas = TwoReplicas();
  TrainUntilCommands(replicas, {0.01, 0.03});
  Form(regroups_);
  Step(ReplicaExited{replicas[1], 0, 0, "", ""});
  StudySpec other = Spec(1);
  other.name = "other";
  Step(CreateStudy{other, false});
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].trial, TrialId(2));
  EXPECT_EQ(starts_[0].slot, 1);
}

TEST_F(FaultsTest, AStragglerWorthKeepingIsKept) {
  const auto replicas = TwoReplicas();
  for (int i = 0; i < 30; ++i) {
    Train(replicas, {0.01, 0.018});
    EXPECT_TRUE(starts_.empty() && regroups_.empty());
  }
  EXPECT_EQ(DecisionsAbout("would not be faster").size(), 1u);
}

TEST_F(FaultsTest, StragglersAreLeftAloneWhereTheStudySaysSo) {
  StudySpec spec = TwoSlotSpec();
  spec.replace_stragglers = false;
  const auto replicas = TwoReplicas(spec, 3);
  for (int i = 0; i < 30; ++i) {
    Train(replicas, {0.01, 0.05});
    EXPECT_TRUE(starts_.empty() && regroups_.empty());
  }
  EXPECT_TRUE(DecisionsAbout("as long a step").empty());
}

TEST_F(FaultsTest, AGroupWhoseReplacementFailsStaysAsItIs) {
  const auto replicas = TwoReplicas(TwoSlotSpec(), 3);
  TrainUntilCommands(replicas, {0.01, 0.05});
  Step(ReplicaExited{starts_.at(0).replica, 1, 0, "", ""});
  EXPECT_TRUE(starts_.empty() && regroups_.empty());
  EXPECT_EQ(core_.Activity(TrialId(1)).replicas, 2);
  TrainUntilCommands(replicas, {0.01, 0.05});
  EXPECT_EQ(starts_.size(), 1u) << "tried again once it was seen again";
}

TEST_F(FaultsTest, AStragglerThatDiesMeanwhileLeavesItsSuccessorAsAJoiner) {
  const auto replicas = TwoReplicas(TwoSlotSpec(), 3);
  TrainUntilCommands(replicas, {0.01, 0.05});
  const ReplicaId successor = starts_.at(0).replica;
  Step(ReplicaExited{replicas[1], -1, 9, "", ""});
  EXPECT_EQ(Members(), std::vector{replicas[0]});
  EXPECT_TRUE(starts_.empty()) << "one is on its way";
  Form(regroups_);
  Ready(successor);
  EXPECT_EQ(Members(), (std::vector{replicas[0], successor}));
}

// ---- Groups that hang ------------------------------------------------------------------------

TEST_F(FaultsTest, WhoDoesNotSayStuckHangsAndIsStopped) {
  const auto replicas = TwoReplicas();
  const std::int64_t before = trial().generation;
  Step(FromReplica{replicas[0], ReplicaStuck{before - 1, 5}});
  EXPECT_TRUE(core_.NextDeadline() >= After(now_, 0.9)) << "of an earlier generation: settled";
  SayStuck(replicas[0]);
  EXPECT_TRUE(stops_.empty()) << "the other's word may be on its way";
  EXPECT_LE(*core_.NextDeadline(), After(now_, 2));
  Wait(2);
  ASSERT_EQ(stops_.size(), 1u);
  EXPECT_EQ(stops_[0].replica, replicas[1]);
  EXPECT_EQ(stops_[0].grace_s, 0);
  EXPECT_EQ(Members(), std::vector{replicas[0]});
  EXPECT_TRUE(regroups_[0].membership.abandon);
  EXPECT_EQ(DecisionsAbout("a replica hangs (node slot 1)").size(), 1u);
  Form(regroups_);
  EXPECT_TRUE(trial().resizes.back().after_loss);
  Step(ReplicaExited{replicas[1], -1, 9, "", ""});
  EXPECT_EQ(trial().state, TrialState::kRunning);
  EXPECT_EQ(trial().restarts, 0);
}

TEST_F(FaultsTest, WhenAllAreStuckANewGenerationIsTried) {
  const auto replicas = TwoReplicas();
  const std::int64_t before = trial().generation;
  SayStuck(replicas[0]);
  SayStuck(replicas[0]);
  EXPECT_TRUE(regroups_.empty()) << "said twice is said once";
  SayStuck(replicas[1]);
  EXPECT_EQ(trial().generation, before + 1);
  EXPECT_EQ(Members(), replicas);
  EXPECT_TRUE(regroups_[0].membership.abandon);
  EXPECT_TRUE(stops_.empty());
  Wait(3);
  EXPECT_TRUE(stops_.empty()) << "nothing is left of the old generation's words";
}

TEST_F(FaultsTest, AGroupThatCannotTrainStartsAgainFromItsCheckpoint) {
  const auto replicas = TwoReplicas();
  TrainOn(replicas[0], 61);
  Step(FromReplica{replicas[0], ReplicaCheckpoint{"/c/1"}});
  for (int round = 1; round <= 3; ++round) {
    for (const ReplicaId replica : replicas) SayStuck(replica);
    ASSERT_EQ(regroups_.size(), 2u) << round;
    EXPECT_EQ(regroups_[0].membership.members.empty(), round == 3);
    EXPECT_TRUE(regroups_[0].membership.abandon);
  }
  EXPECT_EQ(trial().restarts, 1);
  for (const ReplicaId replica : replicas) Step(ReplicaExited{replica, 0, 0, "", ""});
  EXPECT_EQ(starts_.size(), 1u);
  EXPECT_EQ(trial().state, TrialState::kRunning);
  EXPECT_EQ(DecisionsAbout("could not reach one another 3 times; goes on from").size(), 1u);
}

TEST_F(FaultsTest, StepsInBetweenBreakTheRow) {
  const auto replicas = TwoReplicas();
  for (int round = 0; round < 8; ++round) {
    for (const ReplicaId replica : replicas) SayStuck(replica);
    ASSERT_EQ(Members(), replicas) << round;
    Form(regroups_);
    Train(replicas, {0.01, 0.01});
    Train(replicas, {0.01, 0.01});
  }
  EXPECT_EQ(trial().restarts, 0);
}

TEST_F(FaultsTest, AJoinerThatIsRefusedLeavesAndWhoTrainsGoesOn) {
  const auto [trained, joiner] = GrowsOntoAnotherNode();
  SayOutOfReach(joiner, {trained});
  EXPECT_TRUE(stops_.empty() && regroups_.empty()) << "the other's word may be on its way";
  Wait(4);
  EXPECT_TRUE(stops_.empty()) << "nobody is killed for waiting, and the joiner is told to leave";
  EXPECT_EQ(Members(), std::vector{trained});
  EXPECT_EQ(regroups_.size(), 2u) << "who goes on, and who leaves";
  ASSERT_EQ(core_.Faults().size(), 1u);
  EXPECT_EQ(core_.Faults()[0].from, second_);
  EXPECT_EQ(
      DecisionsAbout("second cannot reach first slot 0 at 10.0.0.2:4711 (Connection refused): "
                     "second slot 0 leaves, 1 goes on")
          .size(),
      1u);
  Form(regroups_);
  Step(ReplicaExited{joiner, 0, 0, "", ""});
  Wait(60);
  EXPECT_TRUE(starts_.empty()) << "the two nodes are not paired";
  EXPECT_EQ(trial().state, TrialState::kRunning);
  EXPECT_EQ(trial().restarts, 0);
}

TEST_F(FaultsTest, AJoinerThatWhoTrainsCannotReachLeaves) {
  const auto [trained, joiner] = GrowsOntoAnotherNode();
  SayOutOfReach(trained, {joiner}, Contact::kSilent);
  Wait(4);
  EXPECT_TRUE(stops_.empty());
  EXPECT_EQ(Members(), std::vector{trained});
  EXPECT_EQ(core_.Faults().at(0).to, second_);
}

TEST_F(FaultsTest, WhenAllHaveSpokenNobodyWaitsForMore) {
  const auto [trained, joiner] = GrowsOntoAnotherNode();
  SayOutOfReach(joiner, {trained});
  SayOutOfReach(trained, {joiner});
  EXPECT_EQ(Members(), std::vector{trained});
}

TEST_F(FaultsTest, ANodeWithANewHelloIsTriedAgain) {
  const auto [trained, joiner] = GrowsOntoAnotherNode();
  SayOutOfReach(joiner, {trained});
  SayOutOfReach(trained, {joiner});
  Form(regroups_);
  Step(ReplicaExited{joiner, 0, 0, "", ""});
  Wait(10);
  EXPECT_TRUE(starts_.empty());
  Join("second", 1);
  EXPECT_EQ(starts_.size(), 1u);
  EXPECT_TRUE(core_.Faults().empty());
}

TEST_F(FaultsTest, ATrainedGroupThatIsCutGoesOnWithItsLargerPart) {
  const auto replicas = ThreeOnTwoNodes();
  SayOutOfReach(replicas[2], {replicas[0], replicas[1]}, Contact::kSilent);
  SayOutOfReach(replicas[0], {replicas[2]}, Contact::kSilent);
  SayOutOfReach(replicas[1], {replicas[2]}, Contact::kSilent);
  EXPECT_EQ(Members(), (std::vector{replicas[0], replicas[1]}));
  EXPECT_TRUE(stops_.empty());
}

TEST_F(FaultsTest, WhoIsLateInAGroupThatFormsIsNotBlamed) {
  const auto [trained, joiner] = GrowsOntoAnotherNode();
  Step(FromReplica{
      joiner,
      ReplicaStuck{trial().generation, 5, {{trained, "10.0.0.1:4711", Contact::kAnswered}}}});
  Wait(10);
  EXPECT_TRUE(stops_.empty() && regroups_.empty()) << "its step may be long";
  Form(
      {RegroupCommand{{}, {}, {trial().generation, {{trained, {}, ""}, {joiner, {}, ""}}, false}}});
  EXPECT_EQ(core_.Activity(TrialId(1)).replicas, 2);
}

TEST_F(FaultsTest, NodesThatCannotReachOneAnotherAreParted) {
  const auto replicas = ThreeOnTwoNodes();
  for (int round = 1; round <= 3; ++round) {
    for (const ReplicaId replica : replicas) SayStuck(replica);
    EXPECT_EQ(Members().size(), round < 3 ? 3u : 2u);
  }
  EXPECT_EQ(Members(), (std::vector{replicas[0], replicas[1]})) << "those on rank 0's node";
  Form(regroups_);
  Step(ReplicaExited{replicas[2], 0, 0, "", ""});
  Wait(10);
  EXPECT_TRUE(starts_.empty()) << "the trial stays at its size";
  EXPECT_EQ(trial().state, TrialState::kRunning);
}

TEST_F(FaultsTest, AMemberThatNeverComesToFormIsStopped) {
  const auto replicas = TwoReplicas();
  SayStuck(replicas[0]);
  SayStuck(replicas[1]);
  Step(FromReplica{replicas[0], ReplicaRegrouped{trial().generation, 0, 0.01}});
  for (int i = 0; i < 2; ++i) {
    Wait(30);
    EXPECT_EQ(Members(), replicas) << "told again";
    EXPECT_TRUE(stops_.empty());
    Step(FromReplica{replicas[0], ReplicaRegrouped{trial().generation, 0, 0.01}});
  }
  Wait(30);
  ASSERT_EQ(stops_.size(), 1u);
  EXPECT_EQ(stops_[0].replica, replicas[1]);
  EXPECT_EQ(Members(), std::vector{replicas[0]});
}

// An error of the program ends all members within a moment, the second one while the first one's
// successor is starting.
TEST_F(FaultsTest, WhereAllMembersFailTogetherTheTrialFails) {
  const auto [first, second] = GrowsOntoAnotherNode();
  Form(regroups_);
  TrainOn(first, 61);
  Step(ReplicaExited{second, 1, 0, "", ""});
  for (int i = 0; i < 10 && starts_.empty(); ++i) Wait(1);
  ASSERT_EQ(starts_.size(), 1u) << "the second one's successor";
  const ReplicaId successor = starts_.at(0).replica;
  Step(ReplicaExited{first, 1, 0, "a bug", ""});
  EXPECT_EQ(trial().state, TrialState::kFail);
  EXPECT_EQ(trial().reason, "exited with code 1");
  ASSERT_EQ(stops_.size(), 1u);
  EXPECT_EQ(stops_.at(0).replica, successor);
}

TEST_F(FaultsTest, ALostNodeMayHoldSeveralMembers) {
  const auto replicas = ThreeOnTwoNodes();
  Step(PinTrial{"s", 0, 0});
  Step(AgentGone{large_});
  Wait(11);
  EXPECT_EQ(core_.SlotsHeld(), 1);
  ASSERT_FALSE(regroups_.empty());
  EXPECT_EQ(regroups_.back().replica, replicas[2]);
  EXPECT_EQ(regroups_.back().membership.generation, trial().generation);
  EXPECT_EQ(regroups_.back().membership.members.size(), 1u);
  EXPECT_EQ(trial().state, TrialState::kRunning);
}

}  // namespace
}  // namespace espalier
