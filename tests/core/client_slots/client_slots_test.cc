// Slots of the pool that clients hold for trials they run by themselves.

#include "tuner/core/client_slots/client_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/core_fixture.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ClientSlotsTest : public CoreTest {
 protected:
  void SetUp() override { clients_ = NewStudy("clients"); }

  StudyId NewStudy(const std::string& name, double share = 1) {
    StudySpec spec;
    spec.name = name;
    spec.kind = StudyKind::kByClients;
    spec.share = share;
    return Step(CreateStudy{spec, false}).study();
  }
  TrialId NewTrial() { return NewTrial(clients_); }
  TrialId NewTrial(StudyId study) { return Step(CreateTrial{study, nullptr}).trial(); }

  // As CoreTest::Step, and keeps what others are told.
  Reply Step(const Event& event) {
    now_ = After(now_, 0.01);
    StepResult result = core_.Step(now_, event);
    starts_.clear();
    regroups_.clear();
    for (const Command& command : result.commands) {
      if (const auto* c = std::get_if<StartReplicaCommand>(&command)) starts_.push_back(*c);
      if (const auto* c = std::get_if<RegroupCommand>(&command)) regroups_.push_back(*c);
      if (const auto* c = std::get_if<EndSparesCommand>(&command)) freed_.push_back(c->slot);
    }
    late_ = result.late;
    return result.reply;
  }
  void Wait(double seconds) {
    now_ = After(now_, seconds);
    Step(Tick{});
  }
  NodeId Join(const std::string& name, int slots) {
    return Step(AgentHello{name, slots, {}}).node();
  }
  ReplicaId Ready(ReplicaId replica) {
    Step(FromReplica{
        replica, ReplicaReady{"host:" + std::to_string(replica.value), {64, 64, 1, 64, true}, 10}});
    return replica;
  }
  void Form() {
    const std::vector<RegroupCommand> regroups = regroups_;
    for (const Member& member : regroups.front().membership.members) {
      Step(FromReplica{member.replica,
                       ReplicaRegrouped{regroups.front().membership.generation, 0, 0.01}});
    }
  }

  // What the client hears at once.
  Reply Ask(TrialId trial, int slots, const std::string& node = "", double wait_s = 0) {
    const Reply reply = Step(AcquireSlots{trial, slots, node, wait_s});
    if (!reply.later()) return reply;
    return late_.contains({.trial = trial}) ? late_.at({.trial = trial}) : reply;
  }
  int Held(TrialId trial) { return core_.Activity(trial).slots; }
  const Trial& At(TrialId id) { return core_.state().trials.at(id); }
  bool Open(TrialId id) { return !At(id).spans.empty() && At(id).spans.back().to == Time{}; }
  std::string LastReason(StudyId study) {
    const auto& decisions = core_.state().studies.at(study).decisions;
    return decisions.empty() ? "" : decisions.back().reason;
  }

  StudyId clients_;
  std::map<LaterReply, Reply> late_;
  std::vector<int> freed_;  // slots on whose GPUs no spare is to be left
};

TEST_F(ClientSlotsTest, FreeSlotsAreGivenAtOnceAndCountAsTheTrials) {
  const NodeId node = Join("a", 4);
  const TrialId trial = NewTrial();
  const Reply reply = Ask(trial, 2);
  ASSERT_TRUE(reply.status.ok()) << reply.status;
  EXPECT_THAT(reply.slots(), ElementsAre(Slot{node, 0}, Slot{node, 1}));
  EXPECT_EQ(reply.lease_s(), 60);
  EXPECT_EQ(core_.SlotsHeld(), 2);
  EXPECT_EQ(Held(trial), 2);
  ASSERT_TRUE(Open(trial));
  EXPECT_EQ(At(trial).spans.back().slots, reply.slots());
  ASSERT_EQ(core_.Nodes().at(0).replicas.size(), 2u);
  EXPECT_EQ(core_.Nodes().at(0).replicas.at(0).replica, ReplicaId{});
  EXPECT_EQ(core_.Nodes().at(0).replicas.at(0).trial, trial);
  EXPECT_THAT(LastReason(clients_), HasSubstr("asked for 2 slots: 2 on a"));
  EXPECT_EQ(Ask(trial, 2).slots(), reply.slots()) << "asked again: the same";
  EXPECT_TRUE(absl::IsFailedPrecondition(Ask(trial, 3).status)) << "holds two";

  now_ = After(now_, 30);
  Step(ReleaseSlots{trial});
  EXPECT_EQ(core_.SlotsHeld(), 0);
  EXPECT_FALSE(Open(trial));
  EXPECT_NEAR(SlotSeconds(core_.state(), study(), now_), 60, 0.1);
  EXPECT_THAT(LastReason(clients_), HasSubstr("given back by its client"));
  EXPECT_TRUE(Step(ReleaseSlots{trial}).status.ok()) << "once more does no harm";
}

TEST_F(ClientSlotsTest, SparesEndOnTheGpusOfSlotsThatAreGiven) {
  Join("cpus", 2);
  AgentHello gpus{"gpus", 4, {}};
  gpus.gpus = 2;
  Step(gpus);
  Ask(NewTrial(), 1, "cpus");
  EXPECT_TRUE(freed_.empty());
  Ask(NewTrial(), 2, "gpus");
  EXPECT_THAT(freed_, ElementsAre(0, 1)) << "which are not on one GPU";
}

TEST_F(ClientSlotsTest, WhoWaitsIsServedInOrderOfArrival) {
  Join("a", 4);
  const TrialId holder = NewTrial();
  const TrialId large = NewTrial();
  const TrialId small = NewTrial();
  Ask(holder, 2);
  const Reply waits = Ask(large, 3);
  EXPECT_TRUE(waits.slots().empty());
  EXPECT_THAT(waits.waits_for(), HasSubstr("hold 2 of the 4 slots"));
  EXPECT_THAT(LastReason(clients_), HasSubstr("waits for 3 slots"));
  EXPECT_THAT(Ask(small, 1).waits_for(), HasSubstr("others have asked"))
      << "or a stream of small ones would keep the large one out";
  EXPECT_TRUE(Ask(large, 3, "", 30).later());
  Step(ReleaseSlots{holder});
  ASSERT_TRUE(late_.contains({.trial = large}));
  EXPECT_EQ(late_.at({.trial = large}).slots().size(), 3u);
  EXPECT_EQ(Held(small), 1);
  EXPECT_EQ(core_.SlotsHeld(), 4);
}

TEST_F(ClientSlotsTest, AnAnswerComesWhenTheWaitIsOver) {
  Join("a", 1);
  const TrialId holder = NewTrial();
  const TrialId waiting = NewTrial();
  Ask(holder, 1);
  ASSERT_TRUE(Ask(waiting, 1, "", 20).later());
  EXPECT_LE(SecondsBetween(now_, *core_.NextDeadline()), 20);
  Wait(10);
  EXPECT_TRUE(late_.empty());
  Wait(11);
  ASSERT_TRUE(late_.contains({.trial = waiting}));
  EXPECT_THAT(late_.at({.trial = waiting}).waits_for(), HasSubstr("hold 1 of the 1 slot of"));
  Step(SetTrialState{waiting, TrialState::kFail, {}});
  EXPECT_TRUE(late_.empty()) << "nobody waits any more";
  Step(ReleaseSlots{holder});
  EXPECT_EQ(core_.SlotsHeld(), 0) << "the request went with its trial";
}

TEST_F(ClientSlotsTest, OfTwoLateAnswersInOneBatchTheNewerHolds) {
  Join("a", 1);
  const TrialId holder = NewTrial();
  const TrialId waiting = NewTrial();
  Ask(holder, 1);
  ASSERT_TRUE(Ask(waiting, 1, "", 20).later());
  StepResult batch = core_.Handle(now_, ReleaseSlots{waiting});
  EXPECT_FALSE(batch.late.at({.trial = waiting}).status.ok());
  Append(core_.Handle(now_, AcquireSlots{waiting, 1, "", 20}), batch);
  Append(core_.Handle(now_, ReleaseSlots{holder}), batch);
  Append(core_.Settle(now_), batch);
  EXPECT_EQ(batch.late.at({.trial = waiting}).slots().size(), 1u);
}

TEST_F(ClientSlotsTest, TheLeaseOfASilentClientRunsOut) {
  Join("a", 2);
  const TrialId silent = NewTrial();
  const TrialId busy = NewTrial();
  Ask(silent, 1);
  Ask(busy, 1);
  for (int i = 0; i < 4; ++i) {
    now_ = After(now_, 20);
    EXPECT_EQ(Step(RenewSlots{busy}).slots().size(), 1u);
  }
  EXPECT_EQ(Held(silent), 0);
  EXPECT_EQ(Held(busy), 1);
  EXPECT_THAT(LastReason(clients_), HasSubstr("silent for 60 s"));
  EXPECT_EQ(At(silent).state, TrialState::kRunning) << "its trial is another matter";
  EXPECT_TRUE(absl::IsFailedPrecondition(Step(RenewSlots{silent}).status));
  EXPECT_EQ(Ask(silent, 1).slots().size(), 1u) << "it may ask anew";
}

TEST_F(ClientSlotsTest, WhoWaitsAndIsNotHeardOfIsForgotten) {
  Join("a", 1);
  const TrialId holder = NewTrial();
  const TrialId gone = NewTrial();
  Ask(holder, 1);
  Ask(gone, 1);
  for (int i = 0; i < 4; ++i) {
    now_ = After(now_, 20);
    Step(RenewSlots{holder});
  }
  Step(ReleaseSlots{holder});
  EXPECT_EQ(core_.SlotsHeld(), 0);
}

TEST_F(ClientSlotsTest, TheTrialsEndAndTheStudysDeletionGiveBack) {
  Join("a", 4);
  const TrialId completes = NewTrial();
  const TrialId queued_again = NewTrial();
  const TrialId deleted = NewTrial();
  for (const TrialId id : {completes, queued_again, deleted}) Ask(id, 1);
  Step(SetTrialState{completes, TrialState::kComplete, {0.5}});
  EXPECT_FALSE(Open(completes));
  EXPECT_EQ(At(completes).spans.back().to, At(completes).ended);
  Step(SetTrialState{queued_again, TrialState::kWaiting, {}});
  EXPECT_FALSE(Open(queued_again));
  EXPECT_EQ(core_.SlotsHeld(), 1);
  ASSERT_TRUE(Step(DeleteStudy{clients_}).status.ok());
  EXPECT_EQ(core_.SlotsHeld(), 0);
  EXPECT_TRUE(absl::IsNotFound(Step(RenewSlots{deleted}).status));
}

TEST_F(ClientSlotsTest, ALostOrSmallerNodeTakesItsSlotsAlong) {
  const NodeId a = Join("a", 2);
  const TrialId trial = NewTrial();
  Ask(trial, 2);
  Step(AgentGone{a});
  Wait(5);
  EXPECT_EQ(Held(trial), 2) << "the agent has its lease";
  Wait(6);
  EXPECT_EQ(Held(trial), 0);
  EXPECT_FALSE(Open(trial));
  EXPECT_THAT(LastReason(clients_), HasSubstr("node a was lost"));
  Join("a", 2);
  Ask(trial, 2);
  Join("a", 1);
  EXPECT_EQ(Held(trial), 0);
  EXPECT_THAT(LastReason(clients_), HasSubstr("fewer slots"));
}

TEST_F(ClientSlotsTest, ADrainingNodeGivesNoNewSlotsAndKeepsItsHolders) {
  Join("a", 2);
  const TrialId holder = NewTrial();
  Ask(holder, 1);
  Step(DrainNode{"a"});
  EXPECT_EQ(Held(holder), 1);
  EXPECT_EQ(core_.Nodes().at(0).replicas.size(), 1u) << "who is there is named";
  const TrialId waits = NewTrial();
  EXPECT_THAT(Ask(waits, 1).waits_for(), HasSubstr("no node that takes trials"));
  EXPECT_THAT(Ask(waits, 1, "a").waits_for(), HasSubstr("no node that takes trials"));
  Join("b", 1);
  EXPECT_THAT(Ask(waits, 1, "a").waits_for(), HasSubstr("node \"a\" is not there"));
  EXPECT_EQ(Ask(waits, 1).slots().size(), 1u);
}

TEST_F(ClientSlotsTest, OneNodeIfItFitsOnOneElseSeveral) {
  const NodeId a = Join("a", 2);
  const NodeId b = Join("b", 3);
  const TrialId first = NewTrial();
  const TrialId second = NewTrial();
  EXPECT_THAT(Ask(first, 2).slots(), ElementsAre(Slot{a, 0}, Slot{a, 1}));
  EXPECT_THAT(Ask(second, 1, "b").slots(), ElementsAre(Slot{b, 0}));
  const TrialId third = NewTrial();
  EXPECT_THAT(Ask(third, 3).waits_for(), HasSubstr("hold")) << "b could have all three";
  Step(ReleaseSlots{second});
  EXPECT_EQ(Held(third), 3);
  Step(ReleaseSlots{first});
  Step(ReleaseSlots{third});
  EXPECT_EQ(Ask(first, 5).slots().size(), 5u) << "no node has five";
}

TEST_F(ClientSlotsTest, WhatCannotBeIsSaidAtOnce) {
  Join("a", 2);
  const TrialId trial = NewTrial();
  EXPECT_TRUE(absl::IsInvalidArgument(Ask(trial, 0).status));
  EXPECT_TRUE(absl::IsInvalidArgument(Ask(trial, 1, "", 61).status));
  EXPECT_TRUE(absl::IsNotFound(Ask(trial, 1, "nowhere").status));
  EXPECT_TRUE(absl::IsOutOfRange(Ask(trial, 3, "a").status));
  EXPECT_TRUE(absl::IsNotFound(Ask(TrialId(99), 1).status));
  EXPECT_THAT(Ask(trial, 8).waits_for(), HasSubstr("the pool has 2 slots, 8 are wanted"))
      << "nodes may join at any time";
  Step(SetTrialState{trial, TrialState::kComplete, {1}});
  EXPECT_TRUE(absl::IsFailedPrecondition(Ask(trial, 1).status));
  const TrialId other = NewTrial();
  Step(StopStudy{"clients"});
  EXPECT_TRUE(absl::IsFailedPrecondition(Ask(other, 1).status));
}

TEST_F(ClientSlotsTest, ARestartedCoreKeepsTheHoldAndALeaseBeginsAnew) {
  const NodeId a = Join("a", 2);
  const TrialId trial = NewTrial();
  const TrialId elsewhere = NewTrial();
  Ask(trial, 2);
  Join("b", 1);
  Ask(elsewhere, 1);
  Core again(core_.state(), CoreOptions{});
  now_ = After(now_, 1000);
  again.Step(now_, Tick{});
  EXPECT_EQ(again.Activity(trial).slots, 2);
  again.Step(now_, AgentHello{"a", 2, {}});
  const StepResult renewed = again.Step(now_ = After(now_, 9), RenewSlots{trial});
  EXPECT_THAT(renewed.reply.slots(), ElementsAre(Slot{a, 0}, Slot{a, 1}));
  again.Step(now_ = After(now_, 2), Tick{});
  EXPECT_EQ(again.Activity(elsewhere).slots, 0) << "node b did not come back";
  again.Step(now_ = After(now_, 57), Tick{});
  EXPECT_EQ(again.Activity(trial).slots, 2);
  again.Step(now_ = After(now_, 2), Tick{});
  EXPECT_EQ(again.Activity(trial).slots, 0);
}

TEST_F(ClientSlotsTest, AnExitReportedTwiceDoesNotTakeTheSlotAgain) {
  StudySpec spec = Spec(1);
  const StudyId pool = Step(CreateStudy{spec, false}).study();
  const NodeId a = Join("a", 1);
  const StartReplicaCommand start = starts_.at(0);
  const TrialId trial = NewTrial();
  Ask(trial, 1);
  Step(ReplicaExited{start.replica, 1, 0, "", ""});
  ASSERT_EQ(Held(trial), 1);
  EXPECT_EQ(core_.state().studies.at(pool).state, StudyState::kFailed);
  Core again(core_.state(), CoreOptions{});
  again.Step(now_, AgentHello{"a", 1, {{start.replica, start.trial, 0, 0, std::nullopt}}});
  ASSERT_EQ(again.Nodes().at(0).replicas.size(), 1u);
  EXPECT_EQ(again.Nodes().at(0).replicas.at(0).trial, trial);
  EXPECT_EQ(again.Activity(trial).slots, 1);
  EXPECT_EQ(a, again.Nodes().at(0).id);
}

// ---- beside the tuner's own trials

TEST_F(ClientSlotsTest, AnElasticTrialShrinksForAClientAndGrowsBack) {
  Step(CreateStudy{Spec(1), false});
  Join("a", 2);
  const ReplicaId first = Ready(starts_.at(0).replica);
  Form();
  Wait(3);
  const ReplicaId second = starts_.at(0).replica;
  Ready(second);
  Form();
  const TrialId own = starts_.empty() ? core_.state().trials.begin()->first : TrialId{};
  ASSERT_EQ(Held(own), 2);

  const TrialId trial = NewTrial();
  EXPECT_THAT(Ask(trial, 1).waits_for(), HasSubstr("make room"));
  ASSERT_FALSE(regroups_.empty());
  EXPECT_EQ(regroups_.at(0).membership.members.size(), 1u);
  Form();
  EXPECT_EQ(Held(trial), 0) << "nobody holds a slot twice";
  const ReplicaId left = Held(own) == 2 ? second : first;
  Step(ReplicaExited{left, 0, 0, "", ""});
  EXPECT_EQ(Held(trial), 1);
  EXPECT_EQ(Held(own), 1);
  Wait(20);
  EXPECT_TRUE(starts_.empty()) << "nothing is started in a client's slot";
  Step(RenewSlots{trial});
  Step(ReleaseSlots{trial});
  for (int i = 0; i < 10 && starts_.empty(); ++i) Wait(1);
  ASSERT_EQ(starts_.size(), 1u) << "it grows back";
}

TEST_F(ClientSlotsTest, ClientsDoNotPassTheirPartWhileOthersUseTheRest) {
  Step(CreateStudy{Spec(100), false});
  Join("a", 4);
  ASSERT_EQ(starts_.size(), 4u) << "plain commands: one slot each";
  const std::vector<StartReplicaCommand> started = starts_;
  std::vector<TrialId> trials;
  for (int i = 0; i < 4; ++i) trials.push_back(NewTrial());
  for (const TrialId trial : trials) EXPECT_THAT(Ask(trial, 1).slots().size(), 0u);
  std::vector<StartReplicaCommand> next;
  for (const StartReplicaCommand& start : started) {
    Step(FromReplica{start.replica, ReplicaReport{1, 0.5, 1}});
    Step(ReplicaExited{start.replica, 0, 0, "", ""});
    next.insert(next.end(), starts_.begin(), starts_.end());
  }
  EXPECT_EQ(Held(trials[0]) + Held(trials[1]), 2) << "half of the pool is theirs";
  EXPECT_EQ(Held(trials[2]) + Held(trials[3]), 0);
  EXPECT_EQ(next.size(), 2u) << "and half is not";
  Step(ReleaseSlots{trials[0]});
  EXPECT_EQ(Held(trials[2]), 1);
}

TEST_F(ClientSlotsTest, ARequestBeyondThePartTakesTurnsWithTheTrials) {
  Step(CreateStudy{Spec(100), false});
  Join("a", 1);
  StartReplicaCommand running = starts_.at(0);
  const TrialId first = NewTrial();
  const TrialId second = NewTrial();
  Ask(first, 1);
  Ask(second, 1);
  Step(FromReplica{running.replica, ReplicaReport{1, 0.5, 1}});
  Step(ReplicaExited{running.replica, 0, 0, "", ""});
  EXPECT_EQ(Held(first), 1);
  EXPECT_TRUE(starts_.empty());
  Wait(30);
  Step(ReleaseSlots{first});
  ASSERT_EQ(starts_.size(), 1u) << "it is the trials' turn";
  running = starts_.at(0);
  Step(FromReplica{running.replica, ReplicaReport{1, 0.5, 1}});
  Step(ReplicaExited{running.replica, 0, 0, "", ""});
  ASSERT_EQ(starts_.size(), 1u) << "still";
  running = starts_.at(0);
  EXPECT_THAT(Ask(second, 1).waits_for(), HasSubstr("the tuner's own trials"));
  Wait(31);
  EXPECT_THAT(Ask(second, 1).waits_for(), HasSubstr("make room"));
  Step(FromReplica{running.replica, ReplicaReport{1, 0.5, 1}});
  Step(ReplicaExited{running.replica, 0, 0, "", ""});
  EXPECT_EQ(Held(second), 1);
}

TEST_F(ClientSlotsTest, WhatTheTrialsLeaveUnusedIsForWhoeverAsks) {
  StudySpec spec = Spec(1);
  Step(CreateStudy{spec, false});
  Join("a", 4);
  ASSERT_EQ(starts_.size(), 1u) << "one trial in all, which cannot grow";
  const TrialId first = NewTrial();
  const TrialId second = NewTrial();
  EXPECT_EQ(Ask(first, 2).slots().size(), 2u);
  EXPECT_TRUE(Ask(second, 1).slots().empty()) << "half of the pool is held by clients";
  Wait(3);
  EXPECT_EQ(Held(second), 0);
  Wait(3);
  EXPECT_EQ(Held(second), 1);
}

TEST_F(ClientSlotsTest, StudiesOfClientsGoByTheirShare) {
  Join("a", 3);
  const StudyId other = NewStudy("other");
  const TrialId all = NewTrial();
  Ask(all, 3);
  std::vector<TrialId> mine;
  for (int i = 0; i < 3; ++i) mine.push_back(NewTrial());
  const TrialId theirs = NewTrial(other);
  for (const TrialId trial : mine) Ask(trial, 1);
  Ask(theirs, 1);
  Step(ReleaseSlots{all});
  EXPECT_EQ(Held(theirs), 1) << "the first of each before the third of any";
  EXPECT_EQ(Held(mine[0]) + Held(mine[1]), 2);
  EXPECT_EQ(Held(mine[2]), 0);
}

TEST_F(ClientSlotsTest, ATrialThatIsInTheWayPausesWithACheckpoint) {
  Step(CreateStudy{Spec(100), false});
  Join("a", 2);
  const std::vector<StartReplicaCommand> started = starts_;
  ASSERT_EQ(started.size(), 2u);
  for (const StartReplicaCommand& start : started) {
    Ready(start.replica);
    Form();
  }
  Wait(11);
  const TrialId trial = NewTrial();
  Ask(trial, 1);
  ASSERT_EQ(regroups_.size(), 1u) << "both hold their minimum: one of them pauses";
  EXPECT_TRUE(regroups_.at(0).membership.members.empty());
  const ReplicaId leaves = regroups_.at(0).replica;
  Step(ReplicaExited{leaves, 0, 0, "", ""});
  EXPECT_EQ(Held(trial), 1);
  Step(ReleaseSlots{trial});
  EXPECT_EQ(starts_.size(), 1u) << "the paused one goes on";
}

// ---- where requests fit

TEST(ClientSlotPlaces, FreeSlotsOnTheFullestNodeThatWillDo) {
  const std::vector<ClientNode> nodes = {{NodeId(1), "a", "", 4, 4, 4, 0},
                                         {NodeId(2), "b", "", 4, 2, 2, 0},
                                         {NodeId(3), "c", "", 4, 1, 1, 0}};
  ClientSlots request;
  request.wanted = 2;
  EXPECT_EQ(PlaceOnFree(request, nodes), (Placement{{NodeId(2), 2}}));
  request.node = "a";
  EXPECT_EQ(PlaceOnFree(request, nodes), (Placement{{NodeId(1), 2}}));
  request.node = "c";
  EXPECT_EQ(PlaceOnFree(request, nodes), std::nullopt);
}

TEST(ClientSlotPlaces, SeveralNodesAreOfOneType) {
  const std::vector<ClientNode> nodes = {{NodeId(1), "a", "A", 2, 2, 2, 0},
                                         {NodeId(2), "b", "B", 2, 2, 2, 0},
                                         {NodeId(3), "c", "B", 1, 1, 1, 0}};
  ClientSlots request;
  request.wanted = 3;
  EXPECT_EQ(PlaceOnFree(request, nodes), (Placement{{NodeId(2), 2}, {NodeId(3), 1}}));
  request.wanted = 4;
  EXPECT_EQ(PlaceOnFree(request, nodes), std::nullopt);
}

TEST(ClientSlotPlaces, ThoseWhoHaveToLeaveAreAsFewAsCanBe) {
  const std::vector<ClientNode> nodes = {{NodeId(1), "a", "", 4, 4, 0, 0},
                                         {NodeId(2), "b", "", 4, 4, 0, 3},
                                         {NodeId(3), "c", "", 4, 4, 1, 1}};
  ClientSlots request;
  request.wanted = 2;
  EXPECT_EQ(PlaceOnOpen(request, nodes), (Placement{{NodeId(3), 2}}));
  request.wanted = 3;
  EXPECT_EQ(PlaceOnOpen(request, nodes), (Placement{{NodeId(2), 3}}));
}

}  // namespace
}  // namespace espalier
