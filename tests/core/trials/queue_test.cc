#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/core/core_fixture.h"
#include "tuner/core/clients/request_keys.h"
#include "tuner/core/state/study_facts.h"

namespace espalier {
namespace {

using testing::HasSubstr;

// A core with one study whose trials clients enqueue, and one node.
class Queue : public CoreTest {
 protected:
  StudySpec QueueSpec() {
    StudySpec spec = Spec(0);
    spec.space = {};
    spec.kind = StudyKind::kQueued;
    spec.sampler = {kQueueSampler, {}};
    return spec;
  }
  void Open(int slots) { Open(QueueSpec(), slots); }
  void Open(const StudySpec& spec, int slots) {
    const Reply reply = Step(CreateStudy{spec, false});
    ASSERT_TRUE(reply.status.ok()) << reply.status;
    Join(slots);
  }
  TrialId Enqueue(const std::string& key, double x = 1) {
    const Reply reply = Step(EnqueueTrial{"s", {{"x", x}}, {}, key});
    EXPECT_TRUE(reply.status.ok()) << reply.status;
    return reply.trial();
  }
  Reply Report(TrialId id, const std::string& key, double number,
               std::optional<std::int64_t> step) {
    return Step(RecordReport{id, key, std::to_string(number), number, step});
  }
  TrialState StateOf(TrialId id) { return trial(id.value).state; }
};

TEST_F(Queue, DrawsNothingAndGoesOnWithoutTrials) {
  Open(2);
  Wait(1000);
  EXPECT_EQ(study().state, StudyState::kRunning);
  EXPECT_TRUE(study().trials.empty());
}

TEST_F(Queue, RunsWhatIsEnqueuedAndWaitsForMore) {
  Open(1);
  const TrialId first = Enqueue("a", 0.5);
  ASSERT_EQ(starts_.size(), 1U);
  EXPECT_EQ(trial().parameters, (Parameters{{"x", 0.5}}));
  const TrialId second = Enqueue("b");
  EXPECT_EQ(StateOf(second), TrialState::kWaiting);
  const ReplicaId replica(1);
  Step(ReplicaExited{replica, 0, 0, "", ""});
  EXPECT_EQ(StateOf(first), TrialState::kComplete) << "though it has reported nothing";
  EXPECT_FALSE(trial().value);
  EXPECT_EQ(StateOf(second), TrialState::kRunning);
  Step(ReplicaExited{starts_.at(0).replica, 3, 0, "", ""});
  EXPECT_EQ(StateOf(second), TrialState::kFail);
  EXPECT_EQ(study().state, StudyState::kRunning);
}

TEST_F(Queue, MayHaveSeveralMetricsAndConstraints) {
  StudySpec spec = QueueSpec();
  spec.other_metrics = {"size"};
  spec.directions = {Direction::kMinimize, Direction::kMinimize};
  spec.constraints = {{"size", false, 5}};
  Open(spec, 1);
  const auto run = [&](const std::map<std::string, double>& figures, bool reports) {
    const TrialId id = Enqueue("");
    const ReplicaId replica = starts_.at(0).replica;
    if (reports) Step(FromReplica{replica, ReplicaReport{1, 0.5, 0, figures}});
    Step(ReplicaExited{replica, 0, 0, "", ""});
    return id;
  };
  const TrialId kept = run({{"size", 4}}, true);
  EXPECT_EQ(StateOf(kept), TrialState::kComplete);
  EXPECT_FALSE(Breaks(study().spec, trial(kept.value)));
  const TrialId broken = run({{"size", 6}}, true);
  EXPECT_EQ(StateOf(broken), TrialState::kComplete);
  EXPECT_TRUE(Breaks(study().spec, trial(broken.value)));
  EXPECT_EQ(StateOf(run({}, false)), TrialState::kComplete) << "its client knows what it was for";
  EXPECT_EQ(StateOf(run({}, true)), TrialState::kFail) << "whose size nobody knows";
}

TEST_F(Queue, ARepeatedRequestEnqueuesNothingNewAlsoAfterARestart) {
  Open(1);
  const TrialId first = Enqueue("a");
  const Reply again = Step(EnqueueTrial{"s", {{"x", 1.0}}, {}, "a"});
  EXPECT_TRUE(again.existed());
  EXPECT_EQ(again.trial(), first);
  Core restarted(core_.state(), {});
  const StepResult result = restarted.Step(now_, EnqueueTrial{"s", {{"x", 1.0}}, {}, "a"});
  EXPECT_EQ(result.reply.trial(), first);
  EXPECT_EQ(restarted.state().trials.size(), 1U);
}

TEST_F(Queue, ASearchSpaceIsToBeGivenInFull) {
  StudySpec spec = Spec(0);
  spec.kind = StudyKind::kQueued;
  spec.sampler = {kQueueSampler, {}};
  Open(spec, 1);
  EXPECT_THAT(std::string(Step(EnqueueTrial{"s", {}, {}, ""}).status.message()),
              HasSubstr("parameter \"x\" is needed too"));
  EXPECT_FALSE(Step(EnqueueTrial{"s", {{"x", 7.0}}, {}, ""}).status.ok());
  EXPECT_TRUE(Step(EnqueueTrial{"s", {{"x", 0.5}}, {}, ""}).status.ok());
}

TEST_F(Queue, ParametersThatShareAVariableAreRefusedWhereTheProgramMayReadIt) {
  Open(1);
  EnqueueTrial event{"s", {{"lr", 0.1}, {"LR", 0.2}}, {}, ""};
  EXPECT_EQ(
      Step(event).status.message(),
      "study \"s\": parameters \"lr\" and \"LR\" would both be ESPALIER_PARAM_LR: rename one");
  EXPECT_TRUE(core_.state().trials.empty());
  event.reads_variables = false;
  EXPECT_TRUE(Step(event).status.ok());
}

TEST_F(Queue, OnlyActiveParametersAreToBeGiven) {
  StudySpec spec = Spec(0);
  spec.kind = StudyKind::kQueued;
  spec.sampler = {kQueueSampler, {}};
  spec.space = *SearchSpace::FromJson(R"({"n": {"_type": "choice", "_value": [
      {"_name": "A", "p": {"_type": "uniform", "_value": [0, 1]}}, {"_name": "B"}]}})");
  Open(spec, 1);
  EXPECT_TRUE(Step(EnqueueTrial{"s", {{"n", "B"}}, {}, ""}).status.ok());
  EXPECT_TRUE(Step(EnqueueTrial{"s", {{"n", "A"}, {"n/A/p", 0.5}}, {}, ""}).status.ok());
  EXPECT_THAT(std::string(Step(EnqueueTrial{"s", {{"n", "A"}}, {}, ""}).status.message()),
              HasSubstr("parameter \"n/A/p\" is needed too"));
}

TEST_F(Queue, LeavesRoomForAnotherStudysDraws) {
  Open(4);
  StudySpec drawing = Spec(8);
  drawing.name = "t";
  Step(CreateStudy{drawing, false});
  EXPECT_EQ(starts_.size(), 4U) << "an empty queue claims no part of the pool";
}

TEST_F(Queue, AStoppedStudyTakesNothing) {
  Open(1);
  Step(StopStudy{"s"});
  EXPECT_THAT(std::string(Step(EnqueueTrial{"s", {}, {}, ""}).status.message()),
              HasSubstr("is STOPPED (stopped by the user): resume it for new trials"));
}

TEST_F(Queue, HeldTrialsStayWhereTheyAreUntilTheyAreLetGo) {
  Open(2);
  const TrialId held = Enqueue("a");
  const TrialId other = Enqueue("b");
  Step(StopStudy{"s"});
  Step(ReplicaExited{ReplicaId(1), -1, 15, "", ""});
  Step(ReplicaExited{ReplicaId(2), -1, 15, "", ""});
  EXPECT_EQ(StateOf(held), TrialState::kPaused);
  EXPECT_TRUE(Step(HoldTrial{held}).status.ok());
  Step(ResumeStudy{"s"});
  ASSERT_EQ(starts_.size(), 1U);
  EXPECT_EQ(starts_[0].trial, other);
  Core restarted(core_.state(), {});
  EXPECT_EQ(restarted.state().trials.at(held).state, TrialState::kPaused);
  EXPECT_TRUE(restarted.state().trials.at(held).held);
  EXPECT_TRUE(Step(HoldTrial{held, false}).status.ok());
  ASSERT_EQ(starts_.size(), 1U);
  EXPECT_EQ(starts_[0].trial, held);
}

TEST_F(Queue, CancellingStopsProcessesAndLetsNoneStart) {
  Open(1);
  const TrialId running = Enqueue("a");
  const TrialId waiting = Enqueue("b");
  EXPECT_TRUE(Step(CancelTrial{waiting, TrialState::kFail, ""}).updated());
  EXPECT_EQ(trial(2).state, TrialState::kFail);
  EXPECT_EQ(trial(2).reason, "cancelled by the user");
  EXPECT_TRUE(stops_.empty());

  Report(running, "m", 0.25, 1);
  EXPECT_TRUE(Step(CancelTrial{running, TrialState::kPruned, "Medianstop"}).updated());
  ASSERT_EQ(stops_.size(), 1U);
  EXPECT_EQ(stops_[0].grace_s, study().spec.stop_grace_s);
  EXPECT_EQ(trial().state, TrialState::kPruned);
  EXPECT_EQ(trial().reason, "Medianstop");
  EXPECT_EQ(trial().value, 0.25);
  const Reply again = Step(CancelTrial{running, TrialState::kFail, ""});
  EXPECT_TRUE(again.status.ok());
  EXPECT_FALSE(again.updated());
  EXPECT_EQ(StateOf(running), TrialState::kPruned);
  Step(ReplicaExited{ReplicaId(1), -1, 15, "", ""});
  EXPECT_TRUE(starts_.empty()) << "the cancelled one that waited";
}

TEST_F(Queue, CancelledTrialsAreNoFailuresOfTheStudy) {
  StudySpec spec = QueueSpec();
  spec.max_consecutive_failures = 2;
  Open(spec, 1);
  for (const char* key : {"a", "b", "c"}) {
    Step(CancelTrial{Enqueue(key), TrialState::kFail, "too slow"});
  }
  EXPECT_TRUE(trial().cancelled);
  EXPECT_EQ(study().state, StudyState::kRunning);
}

TEST_F(Queue, AFailureThatSaysCancelledIsAFailure) {
  StudySpec spec = QueueSpec();
  spec.max_consecutive_failures = 1;
  Open(spec, 1);
  const TrialId id = Enqueue("a");
  const ReplicaId replica = Ready(starts_.at(0).replica);
  Form(regroups_);
  Step(FromReplica{replica, ReplicaFinished{std::nullopt, "cancelled by its own program"}});
  EXPECT_EQ(StateOf(id), TrialState::kFail);
  EXPECT_FALSE(trial().cancelled);
  EXPECT_EQ(study().state, StudyState::kFailed);
}

TEST_F(Queue, OnlyTrialsOfThePoolAreHeldAndGivenAnEnvironment) {
  Open(1);
  const TrialId id = Enqueue("a");
  EXPECT_TRUE(Step(SetTrialEnvironment{id, {{"A", "b"}}}).status.ok());
  EXPECT_EQ(trial().environment, (ProcessVariables{{"A", "b"}}));
  EXPECT_TRUE(absl::IsNotFound(Step(HoldTrial{TrialId(9)}).status));
  Step(CancelTrial{id});
  EXPECT_TRUE(absl::IsFailedPrecondition(Step(HoldTrial{id}).status)) << "it has ended";
  EXPECT_TRUE(absl::IsFailedPrecondition(Step(SetTrialEnvironment{id, {}}).status));
  EXPECT_EQ(trial().environment, (ProcessVariables{{"A", "b"}}));
  StudySpec asked = Spec(0);
  asked.name = "asked";
  asked.kind = StudyKind::kByClients;
  Step(CreateStudy{asked, false});
  const Reply other = Step(AskTrial{"asked", {}, ""});
  EXPECT_TRUE(absl::IsPermissionDenied(Step(HoldTrial{other.trial()}).status));
}

TEST_F(Queue, OnlyTrialsOfThePoolAreCancelled) {
  Open(1);
  EXPECT_TRUE(absl::IsNotFound(Step(CancelTrial{TrialId(9)}).status));
  EXPECT_TRUE(
      absl::IsInvalidArgument(Step(CancelTrial{Enqueue("a"), TrialState::kComplete, ""}).status));
  StudySpec asked = Spec(0);
  asked.name = "asked";
  asked.kind = StudyKind::kByClients;
  Step(CreateStudy{asked, false});
  const Reply trial = Step(AskTrial{"asked", {}, ""});
  EXPECT_TRUE(absl::IsPermissionDenied(Step(CancelTrial{trial.trial()}).status));
}

TEST_F(Queue, ReportsCountOnceAndTheFinalOneOnlyAtTheEnd) {
  Open(1);
  const TrialId id = Enqueue("a");
  EXPECT_TRUE(Report(id, "p0", 0.5, 1).updated());
  EXPECT_FALSE(Report(id, "p0", 0.75, 1).updated()) << "a restarted program counts from 0 again";
  EXPECT_EQ(trial().attributes.system.at("p0"), std::to_string(0.5));
  ASSERT_EQ(trial().values.size(), 1U);
  EXPECT_EQ(trial().values[0].value, 0.5);
  EXPECT_TRUE(Report(id, "final", 0.875, std::nullopt).updated());
  EXPECT_FALSE(Report(id, "final", 0.25, std::nullopt).updated());
  EXPECT_EQ(StateOf(id), TrialState::kRunning);
  Step(ReplicaExited{ReplicaId(1), 0, 0, "", ""});
  EXPECT_EQ(StateOf(id), TrialState::kComplete);
  EXPECT_EQ(trial().value, 0.875);
  EXPECT_TRUE(absl::IsFailedPrecondition(Report(id, "p1", 0.5, 2).status));
}

TEST_F(Queue, WhatIsNoFiniteNumberIsKeptButEntersNoCurve) {
  Open(1);
  const TrialId id = Enqueue("a");
  EXPECT_TRUE(Step(RecordReport{id, "p0", "NaN", std::nan(""), 1}).updated());
  EXPECT_TRUE(Step(RecordReport{id, "p1", "{}", std::nullopt, 2}).updated());
  EXPECT_TRUE(trial().values.empty());
  EXPECT_EQ(trial().attributes.system.at("p0"), "NaN");
}

TEST_F(Queue, ATrialThatHasDivergedIsNotTheBest) {
  Open(3);
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<ReplicaId> replicas;
  for (const double last : {std::nan(""), -infinity, 0.5}) {
    const TrialId id = Enqueue(std::to_string(last));
    replicas.push_back(starts_.at(0).replica);
    Report(id, "p0", 0.01, 1);
    EXPECT_TRUE(Report(id, "final", last, std::nullopt).updated());
  }
  for (const ReplicaId replica : replicas) Step(ReplicaExited{replica, 0, 0, "", ""});
  EXPECT_TRUE(std::isnan(trial(1).value.value_or(0)));
  EXPECT_TRUE(std::isnan(trial(2).value.value_or(0)));
  EXPECT_EQ(trial(3).value, 0.5);
  for (const std::int64_t id : {1, 2, 3}) EXPECT_EQ(trial(id).state, TrialState::kComplete);
  EXPECT_EQ(BestTrial(core_.state(), study()), 2);
}

TEST_F(Queue, ATrialThatFailsAfterItsFinalReportHasFailed) {
  Open(1);
  const TrialId id = Enqueue("a");
  Report(id, "final", 0.5, std::nullopt);
  Step(ReplicaExited{ReplicaId(1), 1, 0, "", ""});
  EXPECT_EQ(StateOf(id), TrialState::kFail);
}

}  // namespace
}  // namespace espalier
