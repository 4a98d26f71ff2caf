// Trials that begin with another one's checkpoint, and other parameters.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/checkpoints/checkpoints_fixture.h"
#include "tuner/core/checkpoints/checkpoint_keeping.h"

namespace espalier {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ClonesTest : public CheckpointsTest {
 protected:
  NodeId EnterOf(const std::string& name, int slots, bool clones = true) {
    AgentHello hello{name, slots, {}};
    hello.checkpoints = HeldCheckpoints{};
    hello.clones = clones;
    return Step(hello).node();
  }
  // One trial of a study that draws no more, on node a.
  void TrainParent(bool clones = true) {
    StudySpec spec = Spec(1);
    spec.max_slots = 1;
    Step(CreateStudy{spec, false});
    a_ = EnterOf("a", 1, clones);
    replica_ = Ready(starts_.at(0).replica);
    Form(regroups_);
  }
  Reply Clone(const Parameters& set = {{"x", 0.25}}, const std::string& key = "") {
    return Step(CloneTrial{TrialId(1), set, key});
  }
  std::string Refusal(const Parameters& set = {{"x", 0.25}}) {
    return std::string(Clone(set).status.message());
  }
  void Brought(NodeId node, std::int64_t step, const std::string& error = "") {
    CheckpointCopied copied{node, TrialId(2), Label(step), error, 0};
    if (error.empty()) copied.path = absl::StrCat("/2/step-", step, ".pt");
    Step(copied);
  }
};

TEST_F(ClonesTest, BeginsWithACopyOfItsParentsNewestCheckpoint) {
  TrainParent();
  Save(10);
  const Reply reply = Clone();
  ASSERT_TRUE(reply.status.ok()) << reply.status;
  EXPECT_EQ(reply.trial(), TrialId(2));
  EXPECT_EQ(trial(2).number, 1) << "beside the study's one trial";
  EXPECT_THAT(trial(2).parameters, ElementsAre(Parameter{"x", 0.25}));
  EXPECT_TRUE(trial(2).lineage->awaited());
  ASSERT_EQ(copies_.size(), 1u);
  EXPECT_EQ(copies_[0].node, a_) << "where it lies";
  EXPECT_EQ(copies_[0].trial, TrialId(2));
  EXPECT_EQ(copies_[0].of, 0);
  EXPECT_EQ(copies_[0].what.fingerprint, Print(10));
  b_ = EnterOf("b", 1);
  EXPECT_TRUE(starts_.empty()) << "there is a slot, and no checkpoint";
  Brought(a_, 10);
  EXPECT_EQ(*trial(2).lineage, (Lineage{0, 0, 10, Print(10)}));
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].trial, TrialId(2));
  EXPECT_EQ(starts_[0].from.step, 10);
  EXPECT_THAT(starts_[0].sources, ElementsAre(a_));
  EXPECT_THAT(Reasons(), Contains("begins with checkpoint step-10.pt of trial 0"));
  EXPECT_EQ(trial().state, TrialState::kRunning) << "its parent goes on";
}

TEST_F(ClonesTest, TheParentMayHaveANewerOneByThen) {
  TrainParent();
  Save(10);
  Clone();
  Save(20);
  EXPECT_TRUE(copies_.empty()) << "one is under way";
  Brought(a_, 10, "checkpoint step-10.pt of trial 0 in study s is there no more");
  Wait(kCopyAgain_s);
  ASSERT_EQ(copies_.size(), 1u);
  EXPECT_EQ(copies_[0].what.step, 20);
  Brought(a_, 20);
  EXPECT_EQ(trial(2).lineage->step, 20);
}

TEST_F(ClonesTest, ACopyThatIsUnderWayWhenTheServiceEndsIsOrderedAgain) {
  TrainParent();
  Save(10);
  Clone({{"x", 0.25}}, "key");
  Core restarted(core_.state(), {});
  AgentHello hello{"a", 1, {}};
  hello.checkpoints = HeldCheckpoints{{Held(10, false)}, false};
  hello.clones = true;
  const StepResult result = restarted.Step(After(now_, 1), hello);
  int orders = 0;
  for (const Command& command : result.commands) {
    const auto* copy = std::get_if<CopyCheckpointCommand>(&command);
    if (copy != nullptr && copy->trial == TrialId(2) && copy->of == 0) ++orders;
  }
  EXPECT_EQ(orders, 1);
  const Reply again =
      restarted.Step(After(now_, 2), CloneTrial{TrialId(1), {{"x", 0.25}}, "key"}).reply;
  EXPECT_TRUE(again.existed());
  EXPECT_EQ(again.trial(), TrialId(2));
}

TEST_F(ClonesTest, ACloneOfACloneIsOfTheSameLine) {
  TrainParent();
  Save(10);
  Clone();
  EnterOf("b", 1);
  Brought(a_, 10);
  const Reply reply = Step(CloneTrial{TrialId(2), {{"x", 0.75}}, ""});
  ASSERT_TRUE(reply.status.ok()) << reply.status;
  EXPECT_EQ(trial(3).lineage->parent, 1);
  EXPECT_EQ(trial(3).lineage->founder, 0);
}

TEST_F(ClonesTest, AnAgentThatIsTooOldIsNotAsked) {
  TrainParent(/*clones=*/false);
  Save(10);
  EXPECT_TRUE(Clone().status.ok());
  EXPECT_TRUE(copies_.empty());
  Wait(kHolderPatience_s + 60);
  EXPECT_EQ(trial(2).state, TrialState::kFail);
  EXPECT_THAT(trial(2).reason, HasSubstr("is on node a, which did not come back, or has too old"));
}

TEST_F(ClonesTest, ACheckpointThatIsLostIsNotWaitedForForEver) {
  TrainParent();
  Save(10);
  Clone();
  Step(CancelTrial{TrialId(1), TrialState::kFail, ""});
  Step(ReplicaExited{replica_, 0, 0, "", ""});
  Step(AgentGone{a_});
  EnterOf("b", 1);
  EXPECT_EQ(trial(2).state, TrialState::kWaiting) << "it may come back";
  EnterOf("a", 1);  // with nothing on its disk
  Wait(60);
  EXPECT_EQ(trial(2).state, TrialState::kFail);
  EXPECT_THAT(trial(2).reason, HasSubstr("of trial 0, with which it was to begin, is on no node"));
}

TEST_F(ClonesTest, ACopyThatAlwaysFailsFailsTheClone) {
  TrainParent();
  Save(10);
  Clone();
  for (int i = 0; i < kMostCloneTries; ++i) {
    EXPECT_EQ(trial(2).state, TrialState::kWaiting);
    Brought(a_, 10, "the disk is full");
    Wait(kCopyAgainMost_s);
  }
  EXPECT_EQ(trial(2).state, TrialState::kFail);
  EXPECT_THAT(trial(2).reason, HasSubstr("8 times; the last: the disk is full"));
}

TEST_F(ClonesTest, TheStudyDrawsAsManyTrialsAsWithoutIt) {
  StudySpec spec = Spec(3);
  spec.max_slots = 1;
  spec.points = {{{"x", 0.125}}, {{"x", 0.25}}, {{"x", 0.5}}};
  Step(CreateStudy{spec, false});
  a_ = EnterOf("a", 1);
  replica_ = Ready(starts_.at(0).replica);
  Form(regroups_);
  Save(10);
  Step(CloneTrial{TrialId(1), {{"x", 0.75}}, ""});
  EnterOf("b", 3);
  ASSERT_EQ(core_.state().trials.size(), 4u);
  EXPECT_EQ(study().clones, 1);
  EXPECT_THAT(trial(3).parameters, ElementsAre(Parameter{"x", 0.25}));
  EXPECT_THAT(trial(4).parameters, ElementsAre(Parameter{"x", 0.5}));
}

TEST_F(ClonesTest, ACancelledCloneNeedsNothingMore) {
  TrainParent();
  Save(10);
  Clone();
  Step(CancelTrial{TrialId(2), TrialState::kFail, ""});
  EXPECT_EQ(trial(2).state, TrialState::kFail);
  Brought(a_, 10);
  EnterOf("b", 1);
  EXPECT_TRUE(starts_.empty());
}

TEST_F(ClonesTest, TheStudyEndsWithItsClones) {
  TrainParent();
  Save(10);
  Clone();
  Step(FromReplica{replica_, ReplicaFinished{.value = 1.0}});
  Step(ReplicaExited{replica_, 0, 0, "", ""});
  EXPECT_EQ(trial().state, TrialState::kComplete);
  EXPECT_EQ(study().state, StudyState::kRunning);
  Brought(a_, 10);
  ASSERT_EQ(starts_.size(), 1u);
  const ReplicaId clone = Ready(starts_[0].replica);
  Form(regroups_);
  Step(FromReplica{clone, ReplicaFinished{.value = 0.5}});
  Step(ReplicaExited{clone, 0, 0, "", ""});
  EXPECT_EQ(study().state, StudyState::kComplete);
}

TEST_F(ClonesTest, WhatCannotBeClonedIsRefusedByName) {
  TrainParent();
  EXPECT_THAT(Refusal(), HasSubstr("trial 0 of study \"s\" has saved no checkpoint yet"));
  Save(10);
  EXPECT_THAT(Refusal({}), HasSubstr("at least one parameter of its own"));
  EXPECT_THAT(Refusal({{"y", 0.5}}), HasSubstr("\"y\""));
  EXPECT_THAT(Refusal({{"x", 7.0}}), HasSubstr("\"x\""));
  EXPECT_THAT(Refusal({trial().parameters}), HasSubstr("trial 0 has these parameters itself"));
  EXPECT_EQ(Step(CloneTrial{TrialId(9), {{"x", 0.5}}, ""}).status.code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(core_.state().trials.size(), 1u);
  Step(StopStudy{"s"});
  EXPECT_THAT(Refusal(), HasSubstr("is STOPPED"));
  Step(ResumeStudy{"s", 0, 0});
  Step(CancelTrial{TrialId(1), TrialState::kFail, ""});
  EXPECT_THAT(Refusal(), HasSubstr("has ended as FAIL: a trial can be cloned until it ends"));
}

TEST_F(ClonesTest, ATrialThatHasComeToItsLastStepIsNotCloned) {
  TrainParent();
  Save(10);
  Report(replica_, 9, 0.5);
  ASSERT_TRUE(Clone().status.ok());
  Report(replica_, 10, 0.4);  // of as many as its program says that it will do
  EXPECT_THAT(Refusal({{"x", 0.75}}),
              HasSubstr("trial 0 of study \"s\" has come to its last step, 10"));
}

TEST_F(ClonesTest, TheLastStepIsOneEarlierWhereStepsAreCountedFrom0) {
  TrainParent();
  Save(10);
  Report(replica_, 0, 0.5);
  Report(replica_, 8, 0.4);
  ASSERT_TRUE(Clone().status.ok());
  Report(replica_, 9, 0.3);
  EXPECT_THAT(Refusal({{"x", 0.75}}), HasSubstr("has come to its last step, 9"));
}

TEST_F(ClonesTest, NothingIsLeftToTrainWhereTheParentComesToItsEndBeforeTheCopyIsMade) {
  TrainParent();
  Save(10);
  Clone();
  Report(replica_, 10, 0.4);
  Save(20);
  Step(FromReplica{replica_, ReplicaFinished{}});
  Step(ReplicaExited{replica_, 0, 0, "", ""});
  ASSERT_EQ(trial().state, TrialState::kComplete);
  EXPECT_EQ(trial(2).state, TrialState::kWaiting) << "the copy is under way, of what was before";
  Brought(a_, 10, "checkpoint step-10.pt of trial 0 in study s is there no more");
  // Of the parent's group nothing is left that tells how many steps there are.
  Wait(kCopyAgain_s);
  ASSERT_EQ(copies_.size(), 1u);
  Brought(a_, 20);
  const ReplicaId clone = Ready(starts_.at(0).replica);
  Form(regroups_);
  Step(FromReplica{clone, ReplicaFinished{}});
  EXPECT_EQ(trial(2).state, TrialState::kPruned);
  EXPECT_EQ(trial(2).reason,
            "nothing was left to train: it began with the checkpoint of step 20 of trial 0, and "
            "ended without reporting anything");
  EXPECT_EQ(trial(2).value, std::nullopt);
  Step(ReplicaExited{clone, 0, 0, "", ""});
  EXPECT_EQ(study().state, StudyState::kComplete);
}

TEST_F(ClonesTest, WhatIsKnownToBeTheEndIsNotCopied) {
  TrainParent();
  Save(10);
  Clone();
  Report(replica_, 10, 0.4);
  Brought(a_, 10, "the disk is full");
  Wait(kCopyAgain_s);
  ASSERT_EQ(copies_.size(), 1u) << "the last step can be trained from there";
  Save(20);
  Brought(a_, 10, "checkpoint step-10.pt of trial 0 in study s is there no more");
  Wait(kCopyAgainMost_s);
  EXPECT_TRUE(copies_.empty());
  EXPECT_EQ(trial(2).state, TrialState::kPruned);
  EXPECT_EQ(trial(2).reason,
            "nothing is left to train: trial 0, with whose checkpoint it was to begin, had come to "
            "its end, step 10, before that was copied");
}

TEST_F(ClonesTest, TheParentsEndIsKnownAfterARestartOfTheServiceToo) {
  StudySpec spec = Spec(1);
  spec.max_slots = 1;
  spec.max_step = 10;
  Step(CreateStudy{spec, false});
  a_ = EnterOf("a", 1);
  replica_ = Ready(starts_.at(0).replica);
  Form(regroups_);
  Save(10);
  Clone();
  Report(replica_, 10, 0.4);
  Save(20);
  Step(FromReplica{replica_, ReplicaFinished{}});
  ASSERT_EQ(trial().state, TrialState::kComplete);
  Core restarted(core_.state(), {});
  AgentHello hello{"a", 1, {}};
  hello.checkpoints = HeldCheckpoints{{Held(20, false)}, false};
  hello.clones = true;
  const StepResult result = restarted.Step(After(now_, 1), hello);
  for (const Command& command : result.commands) {
    EXPECT_FALSE(std::holds_alternative<CopyCheckpointCommand>(command));
  }
  EXPECT_EQ(restarted.state().trials.at(TrialId(2)).state, TrialState::kPruned);
  EXPECT_EQ(restarted.state().studies.begin()->second.state, StudyState::kComplete);
}

TEST_F(ClonesTest, AProgramThatNeverReportsFailsInAClone) {
  TrainParent();
  Save(10);
  Clone();
  EnterOf("b", 1);
  Brought(a_, 10);
  const ReplicaId clone = Ready(starts_.at(0).replica);
  Form(regroups_);
  Step(FromReplica{clone, ReplicaFinished{}});
  EXPECT_EQ(trial(2).state, TrialState::kFail);
  EXPECT_THAT(trial(2).reason, HasSubstr("ended without reporting"));
}

// As under `tuner run`, whose agent gives no checkpoints away.
TEST_F(ClonesTest, ACheckpointThatIsKnownByItsPathAloneIsCopiedWhereTheParentRuns) {
  TrainParent();
  Step(FromReplica{replica_, ReplicaCheckpoint{"/a/s/trial-0/checkpoints/step-10.pt", 10}});
  ASSERT_TRUE(Clone().status.ok());
  ASSERT_EQ(copies_.size(), 1u);
  EXPECT_EQ(copies_[0].node, a_);
  EXPECT_EQ(copies_[0].what.name, "step-10.pt");
  EXPECT_EQ(copies_[0].what.fingerprint, "");
  b_ = EnterOf("b", 1);
  CheckpointCopied copied{a_, TrialId(2), Label(10)};
  copied.what.fingerprint.clear();
  copied.path = "/a/s/trial-1/checkpoints/step-10.pt";
  Step(copied);
  EXPECT_EQ(trial(2).lineage->step, 10);
  EXPECT_EQ(trial(2).checkpoint, copied.path);
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].trial, TrialId(2));
}

TEST_F(ClonesTest, FilesThatAProgramWritesInPlaceAreNotCopiedWhileItRuns) {
  StudySpec spec = Spec(1);
  Step(CreateStudy{spec, false});
  a_ = EnterOf("a", 1);
  replica_ = starts_.at(0).replica;
  Step(FromReplica{replica_, ReplicaCheckpoint{"/a/checkpoints", 3, "", "folder"}});
  EXPECT_THAT(Refusal(), HasSubstr("it can be cloned while it is paused"));
}

// A plain program on node a, which has told two values and asks whether to save.
class PlainClonesTest : public ClonesTest {
 protected:
  void Train(bool asks = true, bool resize_by_restart = false) {
    StudySpec spec = Spec(1);
    spec.max_slots = 1;
    spec.resize_by_restart = resize_by_restart;
    Step(CreateStudy{spec, false});
    a_ = EnterOf("a", 1);
    replica_ = starts_.at(0).replica;
    Step(TellValue{TrialId(1), 1, 0.5});
    if (asks) {
      EXPECT_FALSE(Saves(1));
    }
    Step(TellValue{TrialId(1), 2, 0.4});
  }
  bool Saves(std::int64_t step) {
    return Step(AskVerdict{TrialId(1), step, Question::kSave}).should_stop();
  }
  void SaveFolder(const std::string& path = "/a/checkpoints", const std::string& print = "folder") {
    Step(FromReplica{replica_, ReplicaCheckpoint{path, 1, "", print}});
  }
  void End() { Step(ReplicaExited{replica_, 0, 0, "", ""}); }
  void Bring(const std::string& print = "folder") {
    CheckpointCopied copied{a_, TrialId(2), {1, "", print, {}, 0}, "", 0};
    copied.path = "/2/checkpoints/";
    Step(copied);
  }
};

TEST_F(PlainClonesTest, TheParentSavesAndEndsAndGoesOnWhenTheCloneHasItsFolder) {
  Train();
  ASSERT_TRUE(Clone().status.ok());
  EXPECT_TRUE(copies_.empty()) << "it writes there";
  EXPECT_TRUE(stops_.empty()) << "it asks";
  EXPECT_THAT(Reasons(), Contains("saves, and is started again, so that trial 1 can begin with "
                                  "what it has saved"));
  Step(TellValue{TrialId(1), 3, 0.3});
  EXPECT_TRUE(Saves(3));
  SaveFolder();
  EXPECT_TRUE(copies_.empty()) << "it has not ended";
  End();
  ASSERT_EQ(copies_.size(), 1u);
  EXPECT_EQ(copies_[0].node, a_);
  EXPECT_EQ(copies_[0].trial, TrialId(2));
  EXPECT_EQ(copies_[0].of, 0);
  EXPECT_EQ(copies_[0].what.name, "");
  EXPECT_EQ(copies_[0].what.fingerprint, "folder");
  EXPECT_EQ(trial().state, TrialState::kPaused);
  EXPECT_TRUE(starts_.empty());
  Wait(1);
  EXPECT_TRUE(starts_.empty()) << "it would write into what is being copied";
  Bring();
  EXPECT_EQ(*trial(2).lineage, (Lineage{0, 0, 3, "folder"})) << "by what it had told, not saved";
  EXPECT_THAT(Reasons(), Contains("begins with the checkpoint folder of step 3 of trial 0"));
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].trial, TrialId(1)) << "in its own slot";
  EXPECT_EQ(trial().state, TrialState::kRunning);
  EXPECT_EQ(trial().restarts, 0);
  EnterOf("b", 1);
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].trial, TrialId(2));
}

TEST_F(PlainClonesTest, OneSaveIsEnoughForAllThatWait) {
  Train();
  ASSERT_TRUE(Clone().status.ok());
  ASSERT_TRUE(Clone({{"x", 0.75}}).status.ok());
  EXPECT_TRUE(Saves(2));
  SaveFolder();
  End();
  EXPECT_EQ(copies_.size(), 2u);
  Bring();
  EXPECT_TRUE(starts_.empty()) << "the other one has not been given it";
  Step(CancelTrial{TrialId(3), TrialState::kFail, ""});
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].trial, TrialId(1));
}

TEST_F(PlainClonesTest, AStudyThatRestartsItsProgramsTellsThemBySignal) {
  Train(/*asks=*/false, /*resize_by_restart=*/true);
  ASSERT_TRUE(Clone().status.ok());
  ASSERT_EQ(stops_.size(), 1u);
  EXPECT_EQ(stops_[0].replica, replica_);
  SaveFolder("/a/checkpoints/", "");  // as under `tuner run`
  Step(ReplicaExited{replica_, -1, 15, "", ""});
  ASSERT_EQ(copies_.size(), 1u);
  EXPECT_EQ(copies_[0].node, a_);
  Bring("");
  EXPECT_EQ(trial(2).lineage->step, 2);
  EXPECT_EQ(trial(2).checkpoint, "/2/checkpoints/");
  EXPECT_EQ(starts_.size(), 1u);
}

TEST_F(PlainClonesTest, AServiceThatIsRestartedMeanwhileAsksAgain) {
  Train();
  ASSERT_TRUE(Clone().status.ok());
  Core restarted(core_.state(), {});
  AgentHello hello{"a", 1, {LiveReplica{replica_, TrialId(1), 0, 0, {}}}};
  hello.checkpoints = HeldCheckpoints{};
  hello.clones = true;
  restarted.Step(After(now_, 1), hello);
  const auto saves = [&](double after_s, std::int64_t step) {
    const AskVerdict asked{TrialId(1), step, Question::kSave};
    return restarted.Step(After(now_, after_s), asked).reply.should_stop();
  };
  restarted.Step(After(now_, 2), Tick{});
  EXPECT_TRUE(saves(3, 3));
}

TEST_F(PlainClonesTest, OneThatSavesNothingFailsItsCloneAndGoesOn) {
  Train();
  ASSERT_TRUE(Clone().status.ok());
  EXPECT_TRUE(Saves(2));
  End();
  EXPECT_EQ(trial(2).state, TrialState::kFail);
  EXPECT_THAT(trial(2).reason, HasSubstr("has none: a program that is asked to save does so in "
                                         "ESPALIER_CHECKPOINT_DIR"));
  Wait(1);
  EXPECT_EQ(trial().state, TrialState::kRunning);
}

TEST_F(PlainClonesTest, OneThatComesToItsEndBeforeItIsAskedHasNoMidst) {
  Train();
  SaveFolder();
  ASSERT_TRUE(Clone().status.ok());
  End();
  EXPECT_EQ(trial().state, TrialState::kComplete);
  EXPECT_EQ(trial(2).state, TrialState::kPruned);
  EXPECT_THAT(trial(2).reason, HasSubstr("trial 0, from whose midst it was to go on, has come to"));
}

TEST_F(PlainClonesTest, OneThatNeverAsksIsRefused) {
  Train(/*asks=*/false);
  EXPECT_THAT(Refusal(), HasSubstr("has saved no checkpoint yet"));
  SaveFolder();
  EXPECT_THAT(Refusal(), HasSubstr("or at any time where its program asks whether to save"));
}

TEST_F(PlainClonesTest, WhatAnAgentSavesThatCountsAnewIsTheNewest) {
  Train();
  for (std::int64_t save = 1; save <= 3; ++save) {
    Step(FromReplica{replica_, ReplicaCheckpoint{"/a/checkpoints", save, "", Print(save)}});
  }
  Step(FromReplica{replica_, ReplicaCheckpoint{"/a/checkpoints", 1, "", Print(4)}});
  EXPECT_EQ(trial().newest_checkpoint->fingerprint, Print(4));
  EXPECT_EQ(trial().newest_checkpoint->step, 3);
}

TEST_F(PlainClonesTest, WhatIsLeftWhenTheAgentIsKilledIsGoneOnFrom) {
  Train();
  SaveFolder();
  Step(AgentGone{a_});
  AgentHello hello{"a", 1, {}};
  hello.checkpoints = HeldCheckpoints{{{"s", 0, "", "further", false}}, false};
  Step(hello);
  Wait(60);
  EXPECT_EQ(trial().state, TrialState::kRunning) << trial().reason;
  EXPECT_EQ(trial().newest_checkpoint->fingerprint, "further");
}

TEST_F(PlainClonesTest, AFolderIsNoReasonToStartAProgramAgainThatFailed) {
  Train();
  SaveFolder("/a/checkpoints/", "");
  Step(ReplicaExited{replica_, 1, 0, "", ""});
  EXPECT_EQ(trial().state, TrialState::kFail);
}

TEST_F(ClonesTest, ParametersOfAnotherOptionAreGivenToo) {
  StudySpec spec = Spec(1);
  spec.space = *SearchSpace::FromJson(R"json({
      "n": {"_type": "choice", "_value": [
        {"_name": "A", "p": {"_type": "uniform", "_value": [0, 1]}},
        {"_name": "B", "q": {"_type": "uniform", "_value": [0, 1]}}]},
      "y": {"_type": "uniform", "_value": [0, 1]}})json");
  spec.points = {{{"n", "A"}, {"n/A/p", 0.5}, {"y", 0.5}}};
  spec.max_slots = 1;
  Step(CreateStudy{spec, false});
  a_ = EnterOf("a", 1);
  replica_ = Ready(starts_.at(0).replica);
  Form(regroups_);
  Save(10);
  EXPECT_THAT(Refusal({{"n", "B"}}), HasSubstr("parameter \"n/B/q\" is needed too"));
  EXPECT_THAT(Refusal({{"n/B/q", 0.5}}), HasSubstr("\"n/B/q\""));
  ASSERT_TRUE(Clone({{"n", "B"}, {"n/B/q", 0.25}}).status.ok());
  EXPECT_EQ(trial(2).parameters, (Parameters{{"n", "B"}, {"n/B/q", 0.25}, {"y", 0.5}}));
}

}  // namespace
}  // namespace espalier
