// Where checkpoints lie, and what a trial starts from.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/checkpoints/checkpoints_fixture.h"
#include "tuner/core/checkpoints/checkpoint_keeping.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(CheckpointsTest, TheNewestHasASecondCopyOnAnotherNode) {
  Train();
  Save(10);
  ASSERT_EQ(copies_.size(), 1u);
  EXPECT_EQ(copies_[0].node, b_);
  EXPECT_EQ(copies_[0].what.fingerprint, Print(10));
  EXPECT_THAT(copies_[0].sources, ElementsAre(a_));
  Save(20);
  EXPECT_TRUE(copies_.empty()) << "one is under way, and comes to its end first";
  Copied(b_, 10);
  ASSERT_EQ(copies_.size(), 1u);
  EXPECT_EQ(copies_[0].what.step, 20);
  Copied(b_, 20);
  EXPECT_TRUE(copies_.empty());
  ASSERT_EQ(trial().copies.size(), 2u);
  EXPECT_TRUE(trial().copies[1].fetched);
  EXPECT_EQ(trial().copies[1].what.step, 20);
}

TEST_F(CheckpointsTest, ALostNodeCostsNoMoreThanWhatCameAfterTheCopy) {
  Train();
  Save(10);
  Copied(b_, 10);
  Lose(a_);
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].node, b_);
  EXPECT_EQ(starts_[0].from.step, 10);
  EXPECT_THAT(starts_[0].sources, ElementsAre(b_, a_)) << "connected ones first";
}

TEST_F(CheckpointsTest, AThirdNodeTakesTheCopyOver) {
  Train();
  Save(10);
  Copied(b_, 10);
  const NodeId c = Enter("c", 1);
  EXPECT_TRUE(copies_.empty()) << "two are enough";
  Lose(b_);
  ASSERT_EQ(copies_.size(), 1u);
  EXPECT_EQ(copies_[0].node, c);
}

TEST_F(CheckpointsTest, OlderCopiesGoWhenTheNewestHasItsSecond) {
  Train();
  Save(10);
  Copied(b_, 10);
  Enter("c", 1);
  Step(DrainNode{"b", false, 0});  // no copy goes there any more
  Save(20);
  ASSERT_EQ(copies_.size(), 1u);
  const NodeId c = copies_[0].node;
  EXPECT_TRUE(drops_.empty()) << "should the newest be lost now, it is all there is";
  Copied(c, 20);
  ASSERT_EQ(drops_.size(), 1u);
  EXPECT_EQ(drops_[0].node, b_);
  EXPECT_EQ(drops_[0].study, "s");
  EXPECT_EQ(trial().copies.size(), 2u);
}

TEST_F(CheckpointsTest, ACopyThatFailedIsOrderedAgainLater) {
  Train();
  Save(10);
  Copied(b_, 10, "node a: it broke off");
  EXPECT_TRUE(copies_.empty());
  Wait(kCopyAgain_s);
  EXPECT_EQ(copies_.size(), 1u);
  Copied(b_, 10, "node a: it broke off");
  Wait(kCopyAgain_s);
  EXPECT_TRUE(copies_.empty()) << "twice as long";
  Wait(kCopyAgain_s);
  EXPECT_EQ(copies_.size(), 1u);
}

TEST_F(CheckpointsTest, NodesThatCannotTalkCopyNothing) {
  StudySpec spec = Spec(1);
  Step(CreateStudy{spec, false});
  a_ = Enter("a", 1);
  replica_ = Ready(starts_.at(0).replica);
  Form(regroups_);
  b_ = Enter("b", 1);
  Wait(3);
  const ReplicaId joiner = Ready(starts_.at(0).replica);
  const std::int64_t generation = trial().generation;
  for (const auto& [from, to] : {std::pair(replica_, joiner), std::pair(joiner, replica_)}) {
    Step(FromReplica{from, ReplicaStuck{generation, 5, {{to, "b:1", Contact::kRefused, "no"}}}});
  }
  Save(10);
  EXPECT_TRUE(copies_.empty());
  const NodeId c = Enter("c", 1);
  ASSERT_EQ(copies_.size(), 1u);
  EXPECT_EQ(copies_[0].node, c);
}

TEST_F(CheckpointsTest, AJoinerIsGivenNoCheckpoint) {
  Step(CreateStudy{Spec(1), false});
  a_ = Enter("a", 2);
  replica_ = Ready(starts_.at(0).replica);
  EXPECT_FALSE(starts_.empty() ? false : starts_[0].joins);
  Form(regroups_);
  Save(10);
  Wait(3);
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_TRUE(starts_[0].joins);
  EXPECT_TRUE(starts_[0].sources.empty());
}

TEST_F(CheckpointsTest, AJoinerThatHasTakenNothingOverDoesNotGoOnAlone) {
  TrainAndAskForAJoiner();
  const ReplicaId joiner = Ready(starts_.at(0).replica);  // told to join
  Step(ReplicaExited{replica_, -1, 9, "", ""});
  ASSERT_EQ(stops_.size(), 1u);
  EXPECT_EQ(stops_[0].replica, joiner);
  EXPECT_TRUE(regroups_.empty()) << "it would begin from nothing";
  EXPECT_EQ(trial().restarts, 1);
  Step(ReplicaExited{joiner, -1, 15, "", ""});
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].from.step, 10);
}

TEST_F(CheckpointsTest, ATrialThatMayNotStartAgainTellsWhatItsProgramPrinted) {
  StudySpec spec = Spec(1);
  spec.max_restarts = 0;
  Step(CreateStudy{spec, false});
  a_ = Enter("a", 2);
  replica_ = Ready(starts_.at(0).replica);
  Form(regroups_);
  Save(10);
  Wait(3);
  Ready(starts_.at(0).replica);  // told to join
  Step(ReplicaExited{replica_, 1, 0, "RuntimeError: layer 3 is frozen", ""});
  EXPECT_EQ(trial().state, TrialState::kFail);
  EXPECT_THAT(trial().reason, HasSubstr("had not taken over yet, again after 0 restarts"));
  EXPECT_EQ(trial().last_output, "RuntimeError: layer 3 is frozen");
}

TEST_F(CheckpointsTest, AJoinerThatTrainedGoesOnFromMemory) {
  TrainAndAskForAJoiner();
  Ready(starts_.at(0).replica);
  Form(regroups_);
  Step(ReplicaExited{replica_, -1, 9, "", ""});
  EXPECT_TRUE(stops_.empty());
  EXPECT_EQ(regroups_.size(), 1u);
}

TEST_F(CheckpointsTest, WhoLeftBeforeTheNewestWasSavedDoesNotLead) {
  Step(CreateStudy{Spec(1), false});
  a_ = Enter("a", 1);
  replica_ = Ready(starts_.at(0).replica);
  Form(regroups_);
  b_ = Enter("b", 1);
  Wait(3);
  const ReplicaId left = Ready(starts_.at(0).replica);
  Form(regroups_);
  const std::int64_t together = trial().generation;
  Step(PinTrial{"s", 0, 1});
  Form(regroups_);
  Save(10);
  // The service starts again; who was to leave has not heard of it, and the other is gone.
  Core restarted(core_.state(), CoreOptions{});
  AgentHello hello{"b", 1, {{left, TrialId(1), 0, together, ReplicaReady{"b:1", {}, 0}, ""}}};
  hello.checkpoints.emplace();
  restarted.Step(After(now_, 1), hello);
  bool stopped = false;
  for (double s = 2; s < 30; ++s) {
    for (const Command& command : restarted.Step(After(now_, s), Tick{}).commands) {
      const auto* stop = std::get_if<StopReplicaCommand>(&command);
      stopped = stopped || (stop != nullptr && stop->replica == left);
      EXPECT_FALSE(std::holds_alternative<RegroupCommand>(command)) << "it would go back";
    }
  }
  EXPECT_TRUE(stopped);
}

// ---- the newest cannot be had ---------------------------------------------------------------

TEST_F(CheckpointsTest, ATrialWaitsForTheNodeThatAloneHasItsCheckpoint) {
  Train();
  Save(10);
  Lose(a_);
  EXPECT_TRUE(starts_.empty()) << "b has none";
  EXPECT_EQ(trial().state, TrialState::kPaused);
  Wait(11);
  EXPECT_THAT(Reasons().back(),
              HasSubstr("waits for node a, where its checkpoint step-10.pt lies"));
  Enter("a", 1, {{Held(10, false)}, false});
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].from.step, 10);
}

TEST_F(CheckpointsTest, AnOlderOneIsTakenWhenTheNewestIsLostAndTheRecordSaysSo) {
  Train();
  Save(10);
  Copied(b_, 10);
  Wait(100);
  Save(20);
  Copied(b_, 20, "node a: no route to host");
  Lose(a_);
  Wait(20);
  EXPECT_TRUE(starts_.empty()) << "a hundred seconds of training are worth some waiting";
  EXPECT_EQ(trial().state, TrialState::kPaused);
  Wait(100);
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].from.step, 10);
  EXPECT_THAT(Reasons(), ::testing::Contains(HasSubstr(
                             "its checkpoint step-20.pt was lost with node a: goes on from the "
                             "older checkpoint step-10.pt of node b")));
  EXPECT_EQ(trial().checkpoint, "/a/step-10.pt");
}

TEST_F(CheckpointsTest, ATrialWhoseOnlyCheckpointIsLostFailsWithTheReason) {
  Train();
  Save(10);
  Lose(a_);
  Wait(kHolderPatience_s + 11);
  EXPECT_EQ(trial().state, TrialState::kFail);
  EXPECT_EQ(trial().reason,
            "its checkpoint step-10.pt was lost with node a, and no other node has one");
}

constexpr char kNoRoute[] = "node a at 10.0.0.1:7: no route";

TEST_F(CheckpointsTest, AFetchThatFailsIsTriedAgainLaterAndIsNoRestart) {
  Train();
  Save(10);
  Copied(b_, 10);
  Step(ReplicaExited{replica_, -1, 9, "", ""});
  EXPECT_EQ(trial().restarts, 1);
  for (const double pause_s : {kStartAgain_s, 2 * kStartAgain_s, 4 * kStartAgain_s}) {
    ASSERT_EQ(starts_.size(), 1u);
    Step(ReplicaExited{starts_[0].replica, -1, 0, "", kNoRoute, CheckpointFailure::kMissing});
    EXPECT_TRUE(starts_.empty()) << "not at once";
    EXPECT_THAT(Reasons().back(), HasSubstr(kNoRoute));
    Wait(pause_s - 0.1);
    EXPECT_TRUE(starts_.empty());
    Wait(0.1);
  }
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(trial().restarts, 1) << "its program is not at fault";
  Ready(starts_[0].replica);
  EXPECT_EQ(trial().state, TrialState::kRunning);
}

TEST_F(CheckpointsTest, AFetchThatFailsForTooLongEndsTheTrialWithWhatTheAgentSaid) {
  Train();
  Save(10);
  Copied(b_, 10);
  Step(ReplicaExited{replica_, -1, 9, "", ""});
  int tries = 0;
  for (double waited_s = 0; !Ended(trial().state); waited_s += kStartAgainMost_s) {
    ASSERT_LE(waited_s, 2 * kHolderPatience_s);
    if (!starts_.empty()) {
      Step(ReplicaExited{starts_[0].replica, -1, 0, "", kNoRoute, CheckpointFailure::kMissing});
      ++tries;
    }
    if (!Ended(trial().state)) Wait(kStartAgainMost_s);
  }
  EXPECT_GT(tries, 5);
  EXPECT_EQ(trial().state, TrialState::kFail);
  EXPECT_EQ(trial().restarts, 1);
  EXPECT_THAT(trial().reason, HasSubstr(absl::StrCat("node a: ", kNoRoute, "; tried ", tries)));
}

TEST_F(CheckpointsTest, AStartThatSucceedsBeginsTheCountAnew) {
  Train();
  Save(10);
  Copied(b_, 10);
  Step(ReplicaExited{replica_, -1, 9, "", ""});
  Step(ReplicaExited{starts_.at(0).replica, -1, 0, "", kNoRoute, CheckpointFailure::kMissing});
  Wait(kStartAgain_s);
  const ReplicaId started = starts_.at(0).replica;
  Step(ReplicaStarted{started});
  Wait(kHolderPatience_s);
  Step(ReplicaExited{started, -1, 9, "", ""});
  Step(ReplicaExited{starts_.at(0).replica, -1, 0, "", kNoRoute, CheckpointFailure::kMissing});
  EXPECT_FALSE(Ended(trial().state));
  Wait(kStartAgain_s);
  EXPECT_EQ(starts_.size(), 1u);
}

TEST_F(CheckpointsTest, ACheckpointThatNobodyHasWholeIsAnErrorSoon) {
  Train();
  Save(10);
  Copied(b_, 10);
  Step(ReplicaExited{replica_, -1, 9, "", ""});
  const StartReplicaCommand start = starts_.at(0);
  ASSERT_THAT(start.sources, ::testing::UnorderedElementsAre(a_, b_));
  ReplicaExited gone{start.replica,           -1, 0, "", "its own copy is damaged; b: is damaged",
                     CheckpointFailure::kGone};
  Step(gone);
  EXPECT_TRUE(trial().copies.empty());
  Wait(11);
  EXPECT_TRUE(starts_.empty());
  EXPECT_EQ(trial().state, TrialState::kFail) << "there is nobody to wait for";
  EXPECT_EQ(
      trial().reason,
      "no node has its checkpoint step-10.pt any more (node a: its own copy is damaged; b: is "
      "damaged), and no other node has one");
  EXPECT_EQ(trial().restarts, 1);
}

TEST_F(CheckpointsTest, AnOlderOneIsTakenWhenTheNewestIsDamagedAndTheRecordSaysSo) {
  Train();
  Save(10);
  Copied(b_, 10);
  Save(20);
  Step(ReplicaExited{replica_, -1, 9, "", ""});
  ReplicaExited gone{starts_.at(0).replica, -1, 0, "", "is damaged", CheckpointFailure::kGone};
  Step(gone);
  Wait(11);
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].from.step, 10);
  EXPECT_THAT(Reasons(), ::testing::Contains(HasSubstr("no node has its checkpoint step-20.pt any "
                                                       "more (node a: is damaged): goes on from "
                                                       "the older checkpoint step-10.pt")));
}

TEST_F(CheckpointsTest, AFetchThatFailsWhileItsHoldersAreAwayWaitsForThem) {
  Train();
  Save(10);
  Copied(b_, 10);
  const NodeId c = Enter("c", 1);
  Step(AgentGone{a_});
  Step(AgentGone{b_});
  Wait(11);
  EXPECT_EQ(trial().state, TrialState::kPaused);
  EXPECT_TRUE(starts_.empty());
  EXPECT_EQ(trial().restarts, 0);
  Enter("b", 1, {{Held(10, true)}, false});
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_TRUE(starts_[0].node == c || starts_[0].node == b_);
}

TEST_F(CheckpointsTest, ACheckpointThatComesToLightLateIsGoneOnFrom) {
  Train();
  Save(10);
  Copied(b_, 10);
  Step(ReplicaExited{replica_, -1, 9, "", ""});
  const ReplicaId restarted = starts_.at(0).replica;
  Step(CheckpointCopied{b_, TrialId(1), Label(10)});
  // This is told late by an agent that was away: its replica of the same trial is known no more.
  Step(FromReplica{replica_, ReplicaCheckpoint{"/a/step-20.pt", 20, "step-20.pt", Print(20)}});
  EXPECT_EQ(trial().newest_checkpoint->step, 10) << "replicas that do not count are not heard";
  Ready(restarted);
  EXPECT_EQ(regroups_.size(), 1u);
}

// ---- where it goes on -------------------------------------------------------------------------

// Where nodes are alike it is one that has the checkpoint, wherever that is in the order of nodes.
class PlacesToGoOn : public CheckpointsTest, public ::testing::WithParamInterface<bool> {};

TEST_P(PlacesToGoOn, AreThoseWhereItsCheckpointLies) {
  Train();
  const NodeId c = Enter("c", 1);
  const NodeId holder = GetParam() ? c : b_;
  Save(10);
  Copied(holder, 10);
  Step(StopStudy{"s"});
  Step(ReplicaExited{replica_, 0, 0, "", ""});
  ASSERT_EQ(trial().state, TrialState::kPaused);
  Step(DrainNode{"a", false, 0});
  Step(ResumeStudy{"s", 0, 0});
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].node, holder);
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, PlacesToGoOn, ::testing::Bool());

TEST_F(CheckpointsTest, TwoTrialsChangePlacesWhereEachFindsItsOwn) {
  StudySpec spec = Spec(2);
  spec.max_slots = 1;
  Step(CreateStudy{spec, false});
  a_ = Enter("a", 1);
  const ReplicaId first = Ready(starts_.at(0).replica);
  Form(regroups_);
  b_ = Enter("b", 1);
  const ReplicaId second = Ready(starts_.at(0).replica);
  Form(regroups_);
  Step(FromReplica{first, ReplicaCheckpoint{"/a/step-10.pt", 10, "step-10.pt", "one"}});
  Step(FromReplica{second, ReplicaCheckpoint{"/b/step-10.pt", 10, "step-10.pt", "two"}});
  Step(StopStudy{"s"});
  Step(ReplicaExited{first, 0, 0, "", ""});
  Step(ReplicaExited{second, 0, 0, "", ""});
  // As if each had run where the other did.
  TunerState swapped = core_.state();
  for (auto& [id, trial] : swapped.trials) {
    for (CheckpointCopy& copy : trial.copies) copy.node = copy.node == a_ ? b_ : a_;
  }
  Core restarted(std::move(swapped), CoreOptions{});
  AgentHello a{"a", 1, {}};
  a.checkpoints = HeldCheckpoints{{{"s", 1, "step-10.pt", "two", false}}, false};
  AgentHello b{"b", 1, {}};
  b.checkpoints = HeldCheckpoints{{{"s", 0, "step-10.pt", "one", false}}, false};
  restarted.Step(After(now_, 1), a);
  restarted.Step(After(now_, 1), b);
  restarted.Step(After(now_, 60), Tick{});
  int started = 0;
  for (const Command& command : restarted.Step(After(now_, 61), ResumeStudy{"s", 0, 0}).commands) {
    const auto* start = std::get_if<StartReplicaCommand>(&command);
    if (start == nullptr) continue;
    ++started;
    EXPECT_EQ(start->node, start->trial == TrialId(1) ? b_ : a_);
  }
  EXPECT_EQ(started, 2);
}

TEST_F(CheckpointsTest, AStudyOfThePoolKeepsItsNameAndSoDoItsCopies) {
  Train();
  Save(10);
  Copied(b_, 10);
  const Reply renamed = Step(RenameStudy{StudyId(1), "t"});
  EXPECT_EQ(renamed.status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(renamed.status.message()),
              HasSubstr("study \"s\" runs on the tuner's pool and keeps its name"));
  Enter("b", 1, {{Held(10, true)}, false});
  EXPECT_EQ(trial().copies.size(), 2u);
  Step(FromReplica{replica_, ReplicaFinished{0.5, ""}});
  ASSERT_EQ(drops_.size(), 1u);
  EXPECT_EQ(drops_[0].study, "s");
}

// ---- what nodes have ------------------------------------------------------------------------

TEST_F(CheckpointsTest, ANodeThatHasLostItsDiskIsNotCountedOn) {
  Train();
  Save(10);
  Copied(b_, 10);
  Enter("b", 1);
  ASSERT_EQ(copies_.size(), 1u) << "it has none any more";
  EXPECT_EQ(copies_[0].node, b_);
}

TEST_F(CheckpointsTest, WhatANodeHasOnDiskBesideIsNoMatter) {
  Train();
  Save(10);
  Copied(b_, 10);
  Enter("b", 1, {{Held(5, true), Held(10, true)}, false});
  EXPECT_TRUE(copies_.empty());
  EXPECT_TRUE(drops_.empty());
  Enter("b", 1, {{Held(10, true), {"gone", 3, "step-1.pt", "x", true}}, false});
  ASSERT_EQ(drops_.size(), 1u) << "a copy for a study that there is not any more";
  EXPECT_EQ(drops_[0].study, "gone");
  EXPECT_EQ(drops_[0].trial_number, 3);
  Enter("b", 1, {{Held(10, true), {"gone", 3, "step-1.pt", "x", false}}, false});
  EXPECT_TRUE(drops_.empty()) << "what a trial wrote there is its user's";
}

TEST_F(CheckpointsTest, CopiesOfEndedTrialsGo) {
  Train();
  Save(10);
  Copied(b_, 10);
  Step(FromReplica{replica_, ReplicaFinished{0.5, ""}});
  ASSERT_EQ(drops_.size(), 1u);
  EXPECT_EQ(drops_[0].node, b_) << "a's was written there";
  ASSERT_EQ(trial().copies.size(), 1u);
  EXPECT_EQ(trial().copies[0].node, a_);
}

TEST_F(CheckpointsTest, CopiesOfDeletedStudiesGo) {
  Train();
  Save(10);
  Copied(b_, 10);
  Step(StopStudy{"s"});
  Step(ReplicaExited{replica_, 0, 0, "", ""});
  ASSERT_TRUE(Step(DeleteStudy{StudyId(1)}).status.ok());
  ASSERT_EQ(drops_.size(), 1u);
  EXPECT_EQ(drops_[0].node, b_);
}

TEST_F(CheckpointsTest, AgentsOfOtherReleasesAreGivenPathsAsBefore) {
  Step(CreateStudy{Spec(1), false});
  Join(1);
  replica_ = Ready(starts_.at(0).replica);
  Form(regroups_);
  Step(FromReplica{replica_, ReplicaCheckpoint{"/c/5", 5}});
  Enter("b", 1);
  EXPECT_TRUE(copies_.empty());
  Step(ReplicaExited{replica_, -1, 9, "", ""});
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_FALSE(starts_[0].joins);
  EXPECT_TRUE(starts_[0].sources.empty());
}

}  // namespace
}  // namespace espalier
