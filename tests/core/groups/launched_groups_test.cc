#include "tuner/core/groups/launched_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/core/core_fixture.h"

namespace espalier {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A trial of four ranks on two nodes of two slots.
class LaunchedGroupsTest : public CoreTest {
 protected:
  StudySpec Launched(int slots = 4) {
    StudySpec spec = Spec(1);
    spec.min_slots = slots;
    spec.launch = {"ranks"};
    spec.stop_grace_s = 7;
    return spec;
  }
  NodeId JoinNew(const std::string& name, int slots, bool spans = true) {
    AgentHello hello{name, slots, {}};
    hello.spans_launches = spans;
    return Step(hello).node();
  }
  void StartOnTwo() {
    oak_ = JoinNew("oak", 2);
    elm_ = JoinNew("elm", 2);
    Step(CreateStudy{Launched(), false});
    ASSERT_EQ(starts_.size(), 2U);
    first_ = starts_[0];
    second_ = starts_[1];
  }
  void MeetAll() {
    Step(FromReplica{second_.replica, RanksWait{""}});
    Step(FromReplica{first_.replica, RanksWait{"10.0.0.1:7100"}});
  }
  // The exit of a replica one rank of which has failed.
  static ReplicaExited Failed(ReplicaId replica, int code, const std::string& rank) {
    ReplicaExited exited{replica, code, 0, "last words of " + rank, ""};
    exited.rank = rank;
    return exited;
  }
  static ReplicaExited Well(ReplicaId replica) { return {replica, 0, 0, "", ""}; }
  static ReplicaExited Terminated(ReplicaId replica) { return {replica, -1, 15, "", ""}; }

  NodeId oak_;
  NodeId elm_;
  StartReplicaCommand first_;
  StartReplicaCommand second_;
};

TEST_F(LaunchedGroupsTest, AReplicaStartsOnEachNodeOnceAllSlotsAreFree) {
  StartOnTwo();
  EXPECT_EQ(first_.node, oak_);
  EXPECT_EQ(first_.node_rank, 0);
  EXPECT_EQ(second_.node, elm_);
  EXPECT_EQ(second_.node_rank, 1);
  for (const StartReplicaCommand& start : {first_, second_}) {
    EXPECT_EQ(start.slot, 0);
    EXPECT_THAT(start.more_slots, ElementsAre(1));
    EXPECT_THAT(start.ranks_of_nodes, ElementsAre(2, 2));
  }
  EXPECT_EQ(trial().spans.back().slots.size(), 4U) << "it is on record with all";
}

TEST_F(LaunchedGroupsTest, WhatFitsOnOneNodeIsOnOneWithoutAMeeting) {
  JoinNew("oak", 1);
  JoinNew("large", 2);
  Step(CreateStudy{Launched(2), false});
  ASSERT_EQ(starts_.size(), 1U);
  EXPECT_TRUE(starts_[0].ranks_of_nodes.empty());
  EXPECT_THAT(starts_[0].more_slots, ElementsAre(1));
}

TEST_F(LaunchedGroupsTest, SlotsPerNodeSpreadIt) {
  JoinNew("oak", 4);
  JoinNew("elm", 4);
  StudySpec spec = Launched(2);
  spec.slots_per_node = 1;
  Step(CreateStudy{spec, false});
  ASSERT_EQ(starts_.size(), 2U);
  EXPECT_THAT(starts_[0].ranks_of_nodes, ElementsAre(1, 1));
}

TEST_F(LaunchedGroupsTest, NothingBeginsWhileAnAgentKnowsNothingOfIt) {
  JoinNew("oak", 2);
  JoinNew("old", 2, /*spans=*/false);
  Step(CreateStudy{Launched(), false});
  Wait(60);
  EXPECT_TRUE(starts_.empty());
  EXPECT_THAT(core_.AgentsTooOldFor(study().spec), ElementsAre("old"));
  JoinNew("old", 2);
  EXPECT_EQ(starts_.size(), 2U) << "it has been upgraded";
  EXPECT_TRUE(core_.AgentsTooOldFor(study().spec).empty());
}

TEST_F(LaunchedGroupsTest, AllAreToldWhereToMeetOnceAllWait) {
  StartOnTwo();
  Step(FromReplica{second_.replica, RanksWait{""}});
  EXPECT_TRUE(meets_.empty());
  Step(FromReplica{first_.replica, RanksWait{"10.0.0.1:7100"}});
  ASSERT_EQ(meets_.size(), 2U);
  for (const RanksMeetCommand& meet : meets_) EXPECT_EQ(meet.address, "10.0.0.1:7100");
  EXPECT_EQ(meets_[0].node, oak_);
  EXPECT_EQ(meets_[1].node, elm_);
}

TEST_F(LaunchedGroupsTest, AnAgentThatComesBackIsToldAgain) {
  StartOnTwo();
  MeetAll();
  LiveReplica live;
  live.replica = second_.replica;
  live.trial = second_.trial;
  live.more_slots = {1};
  live.ranks_wait = RanksWait{""};
  AgentHello hello{"elm", 2, {live}};
  hello.spans_launches = true;
  Step(hello);
  EXPECT_EQ(meets_.size(), 2U) << "nobody knows whether the command arrived";
  EXPECT_EQ(trial().state, TrialState::kRunning);
}

TEST_F(LaunchedGroupsTest, ItIsCompleteWhenAllHaveEndedWell) {
  StartOnTwo();
  MeetAll();
  Step(TellValue{trial().id, 1, 0.5});
  Step(Well(second_.replica));
  EXPECT_TRUE(stops_.empty());
  EXPECT_EQ(trial().state, TrialState::kRunning);
  Step(Well(first_.replica));
  EXPECT_EQ(trial().state, TrialState::kComplete);
}

TEST_F(LaunchedGroupsTest, TheFirstFailureIsTheReasonThoughItsNodeEndsLast) {
  StartOnTwo();
  MeetAll();
  RanksFailed failed{.exit_code = 3, .ago_s = 0.2};
  Step(FromReplica{second_.replica, failed});
  ASSERT_EQ(stops_.size(), 1U) << "the other node's ranks end at once";
  EXPECT_EQ(stops_[0].replica, first_.replica);
  EXPECT_EQ(stops_[0].grace_s, 7);
  // Its ranks have lost a connection, and ended before they were told.
  Step(FromReplica{first_.replica, RanksFailed{.exit_code = 1, .ago_s = 0.1}});
  EXPECT_TRUE(stops_.empty());
  Step(Failed(first_.replica, 1, "rank 0 of 4 on oak"));
  EXPECT_EQ(trial().state, TrialState::kRunning);
  // Its launcher takes longer than the grace.
  ReplicaExited exited = Failed(second_.replica, -1, "rank 2 of 4 on elm");
  exited.signal = 9;
  Step(exited);
  EXPECT_EQ(trial().state, TrialState::kFail);
  EXPECT_EQ(trial().reason, "rank 2 of 4 on elm exited with code 3");
  EXPECT_EQ(trial().last_output, "last words of rank 2 of 4 on elm");
}

TEST_F(LaunchedGroupsTest, WhatFailedEarlierIsTheReasonThoughItIsHeardOfLater) {
  StartOnTwo();
  MeetAll();
  Step(FromReplica{first_.replica, RanksFailed{.exit_code = 1, .ago_s = 0.2}});
  Step(FromReplica{second_.replica, RanksFailed{.exit_code = 1, .ago_s = 2, .noted = true}});
  Step(Failed(second_.replica, 1, "rank 3 of 4 on elm"));
  Step(Failed(first_.replica, 1, "rank 0 of 4 on oak"));
  EXPECT_EQ(trial().reason, "rank 3 of 4 on elm exited with code 1");
}

TEST_F(LaunchedGroupsTest, OneThatIsKilledComesBeforeThoseThatItBreaks) {
  StartOnTwo();
  MeetAll();
  Step(FromReplica{first_.replica, RanksFailed{.exit_code = 1, .ago_s = 0.2}});
  Step(FromReplica{second_.replica, RanksFailed{.signal = 9, .ago_s = 0.15}});
  ReplicaExited killed{second_.replica, -1, 9, "", ""};
  killed.rank = "rank 2 of 4 on elm";
  Step(Failed(first_.replica, 1, "rank 0 of 4 on oak"));
  Step(killed);
  EXPECT_EQ(trial().reason, "rank 2 of 4 on elm was killed by signal 9");
}

TEST_F(LaunchedGroupsTest, TheReasonNamesTheRankOfAnotherNodeThatHadLeftBefore) {
  StartOnTwo();
  MeetAll();
  Step(FromReplica{second_.replica, RanksFailed{.exit_code = 3, .ago_s = 0.5}});
  Step(FromReplica{first_.replica, RanksLeft{.rank = 1, .ago_s = 0.6}});
  Step(Terminated(first_.replica));
  // Of those of its own node, of which it tells too, one had left, but later.
  Step(FromReplica{second_.replica, RanksLeft{.rank = 3, .ago_s = 0.55}});
  ReplicaExited exited = Failed(second_.replica, 3, "rank 2 of 4 on elm");
  exited.error = "exited with code 3 after rank 3 had ended with 0";
  Step(exited);
  EXPECT_EQ(trial().reason, "rank 2 of 4 on elm exited with code 3 after rank 1 had ended with 0");
  EXPECT_EQ(trial().last_output, "last words of rank 2 of 4 on elm");
}

TEST_F(LaunchedGroupsTest, ARankThatLeftIsNamedThoughItIsHeardOfALittleLate) {
  StartOnTwo();
  MeetAll();
  Step(FromReplica{second_.replica, RanksFailed{.exit_code = 3, .ago_s = 0.5}});
  Step(FromReplica{first_.replica, RanksLeft{.rank = 1, .ago_s = 0.45}});
  // An end with 0 that is called a failure is no rank that had left.
  Step(FromReplica{first_.replica, RanksFailed{.exit_code = 0, .ago_s = 2}});
  Step(Terminated(first_.replica));
  Step(Failed(second_.replica, 3, "rank 2 of 4 on elm"));
  EXPECT_THAT(trial().reason, testing::HasSubstr("rank 2 of 4 on elm exited with code 3"));
}

TEST_F(LaunchedGroupsTest, NobodyHasLeftBeforeWhatFailedEarlier) {
  StartOnTwo();
  MeetAll();
  Step(FromReplica{second_.replica, RanksFailed{.exit_code = -1, .signal = 11, .ago_s = 0.8}});
  Step(FromReplica{first_.replica, RanksLeft{.rank = 1, .ago_s = 0.4}});
  Step(Terminated(first_.replica));
  ReplicaExited exited = Failed(second_.replica, -1, "rank 2 of 4 on elm");
  exited.signal = 11;
  Step(exited);
  EXPECT_EQ(trial().reason, "rank 2 of 4 on elm was killed by signal 11");
}

TEST_F(LaunchedGroupsTest, WhatIsSaidOfARankThatFailedDoesNotKeepItFromStartingAgain) {
  StartOnTwo();
  MeetAll();
  Step(FromReplica{first_.replica, ReplicaCheckpoint{"/c/1"}});
  Step(FromReplica{second_.replica, RanksFailed{.exit_code = 3, .ago_s = 0.5}});
  Step(FromReplica{first_.replica, RanksLeft{.rank = 0, .ago_s = 0.6}});
  Step(Terminated(first_.replica));
  Step(Failed(second_.replica, 3, "rank 2 of 4 on elm"));
  EXPECT_EQ(trial().state, TrialState::kRunning);
  EXPECT_EQ(trial().restarts, 1);
}

TEST_F(LaunchedGroupsTest, WhatCannotBeStartedEndsTheOthers) {
  StartOnTwo();
  ReplicaExited exited{second_.replica, -1, 0, "", "cannot start train: not found"};
  Step(exited);
  ASSERT_FALSE(stops_.empty());
  EXPECT_EQ(stops_[0].replica, first_.replica);
  Step(Terminated(first_.replica));
  EXPECT_EQ(trial().state, TrialState::kPaused) << "it may start on another node";
  for (const NodeView& node : core_.Nodes()) {
    if (node.id != elm_) continue;
    ASSERT_FALSE(node.unusable.empty());
    EXPECT_THAT(node.unusable.begin()->second, HasSubstr("cannot start train: not found"));
  }
}

TEST_F(LaunchedGroupsTest, RanksThatRunOnForTooLongAreEnded) {
  StartOnTwo();
  MeetAll();
  Step(Well(second_.replica));
  Wait(599);
  EXPECT_TRUE(stops_.empty());
  Wait(2);
  ASSERT_EQ(stops_.size(), 1U);
  Step(Terminated(first_.replica));
  EXPECT_EQ(trial().state, TrialState::kFail);
  EXPECT_EQ(trial().reason,
            "ranks 2 and 3 of 4 on elm ended with 0, and others ran on for 600 s (exit_timeout_s)");
}

TEST_F(LaunchedGroupsTest, APrunedTrialEndsOnAllNodes) {
  StartOnTwo();
  MeetAll();
  Step(StopStudy{"s"});
  EXPECT_EQ(stops_.size(), 2U);
  Step(Terminated(first_.replica));
  Step(Terminated(second_.replica));
  EXPECT_EQ(core_.SlotsHeld(), 0);
}

TEST_F(LaunchedGroupsTest, ANodeThatIsLostEndsTheRestAndCostsNoRestart) {
  StartOnTwo();
  MeetAll();
  Step(AgentGone{elm_});
  // Whose connections to it are gone as well, before it is known that the node is.
  Step(FromReplica{first_.replica, RanksFailed{.exit_code = 1, .ago_s = 0.2}});
  Step(Failed(first_.replica, 1, "rank 0 of 4 on oak"));
  EXPECT_EQ(trial().state, TrialState::kRunning) << "it may come back";
  Wait(3600);
  EXPECT_EQ(trial().state, TrialState::kPaused);
  EXPECT_EQ(trial().reason, "its ranks on elm were lost with their agent");
  EXPECT_EQ(trial().restarts, 0);
  EXPECT_TRUE(starts_.empty()) << "two slots are not enough";
  JoinNew("ash", 2);
  ASSERT_EQ(starts_.size(), 2U);
  EXPECT_EQ(starts_[1].node_rank, 1);
}

TEST_F(LaunchedGroupsTest, AnAgentThatEndsTakesTheRestWithIt) {
  StartOnTwo();
  MeetAll();
  ReplicaExited exited = Terminated(second_.replica);
  exited.agent_stops = true;
  Step(exited);
  ASSERT_EQ(stops_.size(), 1U);
  EXPECT_EQ(stops_[0].replica, first_.replica);
  Step(Terminated(first_.replica));
  EXPECT_NE(trial().state, TrialState::kFail);
  EXPECT_EQ(trial().restarts, 0);
}

TEST_F(LaunchedGroupsTest, AfterARestartOfTheServiceAWholeOneGoesOnAndAPartDoesNot) {
  StartOnTwo();
  const auto hello = [](const std::string& node, const StartReplicaCommand& start, bool there) {
    AgentHello said{node, 2, {}};
    said.spans_launches = true;
    if (!there) return said;
    LiveReplica live;
    live.replica = start.replica;
    live.trial = start.trial;
    live.slot = start.slot;
    live.more_slots = start.more_slots;
    live.ranks_wait = RanksWait{start.node_rank == 0 ? "10.0.0.1:7100" : ""};
    said.replicas.push_back(live);
    return said;
  };
  Core whole(TunerState(core_.state()), {});
  whole.Step(After(now_, 1), hello("oak", first_, true));
  const StepResult back = whole.Step(After(now_, 2), hello("elm", second_, true));
  int meets = 0;
  for (const Command& command : back.commands) {
    meets += std::holds_alternative<RanksMeetCommand>(command) ? 1 : 0;
  }
  EXPECT_EQ(meets, 2);
  EXPECT_EQ(whole.SlotsHeld(), 4);

  Core part(TunerState(core_.state()), {});
  part.Step(After(now_, 1), hello("oak", first_, true));
  const StepResult lost = part.Step(After(now_, 2), hello("elm", second_, false));
  ASSERT_EQ(lost.commands.size(), 1U);
  const auto* stop = std::get_if<StopReplicaCommand>(&lost.commands[0]);
  ASSERT_NE(stop, nullptr);
  EXPECT_EQ(stop->replica, first_.replica);
  part.Step(After(now_, 3), Terminated(first_.replica));
  EXPECT_NE(part.state().trials.at(first_.trial).state, TrialState::kFail);
  EXPECT_EQ(part.state().trials.at(first_.trial).restarts, 0);
}

TEST_F(LaunchedGroupsTest, RanksThatAskSaveAtOneStepAndTheTrialGoesOn) {
  StartOnTwo();
  MeetAll();
  const TrialId id = first_.trial;
  const auto saves = [id](Core& core, Time at, std::int64_t step) {
    return core.Step(at, AskVerdict{id, step, Question::kSave}).reply.should_stop();
  };
  EXPECT_FALSE(saves(core_, now_, 1));
  Step(DrainNode{"elm", false, 40});
  Wait(25);
  EXPECT_TRUE(stops_.empty()) << "it asks";
  EXPECT_FALSE(saves(core_, now_, 1)) << "the ranks of the other node";
  EXPECT_TRUE(saves(core_, now_, 2));

  Core again(TunerState(core_.state()), {});
  for (const auto& [name, start] : {std::pair("oak", first_), std::pair("elm", second_)}) {
    LiveReplica live;
    live.replica = start.replica;
    live.trial = id;
    live.slot = start.slot;
    live.more_slots = start.more_slots;
    AgentHello hello{name, 2, {live}};
    hello.spans_launches = true;
    again.Step(now_, hello);
  }
  EXPECT_TRUE(saves(again, now_, 2));
  again.Step(After(now_, 1), Well(first_.replica));
  again.Step(After(now_, 2), Well(second_.replica));
  EXPECT_NE(again.state().trials.at(id).state, TrialState::kComplete) << "it has saved";
  EXPECT_EQ(again.state().trials.at(id).restarts, 0);

  Step(Well(first_.replica));
  Step(Well(second_.replica));
  EXPECT_NE(trial().state, TrialState::kComplete) << "it has saved";
  EXPECT_EQ(trial().restarts, 0);
}

}  // namespace
}  // namespace espalier
