#include <gtest/gtest.h>

#include <cmath>

#include "tests/core/core_fixture.h"

namespace espalier {
namespace {

constexpr char kFloat[] = R"({"name": "FloatDistribution", ...})";

// A core with one study whose trials its clients run.
class AskAndTell : public CoreTest {
 protected:
  void SetUp() override {
    StudySpec spec;
    spec.name = "by clients";
    spec.kind = StudyKind::kByClients;
    const Reply reply = Step(CreateStudy{spec, false});
    ASSERT_TRUE(reply.status.ok()) << reply.status;
    study_ = reply.study();
  }

  TrialId Create() { return Step(CreateTrial{study_, nullptr}).trial(); }
  absl::Status Suggest(TrialId trial, const std::string& name, double value,
                       const std::string& kind = "float", const std::string& text = kFloat) {
    return Step(SuggestParameter{trial, value, {name, text, kind}}).status;
  }
  Reply Tell(TrialId trial, TrialState state, std::vector<double> values = {}) {
    return Step(SetTrialState{trial, state, std::move(values)});
  }
  const Trial& At(TrialId id) { return core_.state().trials.at(id); }

  StudyId study_;
};

TEST_F(AskAndTell, TrialsAreNumberedRunFromTheStartAndTakeNoSlot) {
  Join(4);
  const TrialId first = Create();
  const TrialId second = Create();
  EXPECT_LT(first, second);
  EXPECT_EQ(At(first).number, 0);
  EXPECT_EQ(At(second).number, 1);
  EXPECT_EQ(At(first).state, TrialState::kRunning);
  EXPECT_EQ(At(first).started, At(first).created);
  Wait(10);
  EXPECT_TRUE(starts_.empty());
  EXPECT_EQ(core_.SlotsHeld(), 0);
}

TEST_F(AskAndTell, OneOfAllWhoAskGetsAWaitingTrial) {
  auto content = std::make_shared<TrialTemplate>();
  const TrialId waiting = Step(CreateTrial{study_, content}).trial();
  EXPECT_EQ(At(waiting).started, Time{});
  EXPECT_TRUE(Tell(waiting, TrialState::kRunning).updated());
  EXPECT_FALSE(Tell(waiting, TrialState::kRunning).updated());
  EXPECT_LT(At(waiting).created, At(waiting).started);
  EXPECT_TRUE(Tell(waiting, TrialState::kWaiting).updated()) << "back into the queue";
  EXPECT_TRUE(Tell(waiting, TrialState::kRunning).updated());
}

TEST_F(AskAndTell, AnEndedTrialKeepsWhatItHas) {
  const TrialId id = Create();
  ASSERT_TRUE(Tell(id, TrialState::kComplete, {0.5, -1}).updated());
  EXPECT_EQ(At(id).value, 0.5);
  EXPECT_EQ(At(id).other_values, std::vector<double>{-1});
  const Trial before = At(id);
  EXPECT_TRUE(absl::IsFailedPrecondition(Suggest(id, "x", 1)));
  EXPECT_TRUE(absl::IsFailedPrecondition(Tell(id, TrialState::kRunning).status));
  EXPECT_TRUE(absl::IsFailedPrecondition(Step(SetIntermediateValue{id, 1, 1}).status));
  EXPECT_TRUE(absl::IsFailedPrecondition(Step(SetTrialAttribute{id, false, "k", "1"}).status));
  EXPECT_EQ(At(id), before);
}

TEST_F(AskAndTell, AClientDoesNotPauseItsTrial) {
  const TrialId id = Create();
  EXPECT_TRUE(absl::IsInvalidArgument(Step(SetTrialState{id, TrialState::kPaused, {}}).status));
  EXPECT_EQ(At(id).state, TrialState::kRunning);
}

TEST_F(AskAndTell, ARenamedStudyKeepsItsIdAndTrials) {
  const TrialId trial = Create();
  StudySpec other;
  other.name = "taken";
  other.kind = StudyKind::kByClients;
  ASSERT_TRUE(Step(CreateStudy{other, false}).status.ok());
  EXPECT_TRUE(absl::IsAlreadyExists(Step(RenameStudy{study_, "taken"}).status));
  ASSERT_TRUE(Step(RenameStudy{study_, "new name"}).status.ok());
  const Study& study = core_.state().studies.at(study_);
  EXPECT_EQ(study.spec.name, "new name");
  EXPECT_EQ(study.trials, std::vector<TrialId>{trial});
  EXPECT_EQ(core_.state().FindStudy("by clients"), nullptr);
  EXPECT_EQ(core_.state().FindStudy("new name"), &study);
  EXPECT_TRUE(absl::IsNotFound(Step(RenameStudy{StudyId(99), "x"}).status));
}

TEST_F(AskAndTell, AParameterKeepsItsKindOfDistribution) {
  const TrialId first = Create();
  ASSERT_TRUE(Suggest(first, "x", 0.5).ok());
  ASSERT_TRUE(Suggest(first, "x", 0.7, "float", "wider").ok()) << "the same parameter anew";
  ASSERT_EQ(At(first).suggested.size(), 1u);
  EXPECT_EQ(At(first).suggested[0].value, 0.7);
  const TrialId second = Create();
  const absl::Status other = Suggest(second, "x", 1, "choices");
  EXPECT_TRUE(absl::IsInvalidArgument(other)) << other;
  EXPECT_NE(other.message().find("\"x\""), absl::string_view::npos);
  EXPECT_TRUE(At(second).suggested.empty());
  ASSERT_TRUE(Suggest(second, "x", 0.1).ok());
  EXPECT_EQ(study().suggestions.size(), 2u) << "equal distributions are kept once";
}

TEST_F(AskAndTell, TheLastValueOfAStepCounts) {
  const TrialId id = Create();
  Step(SetIntermediateValue{id, 3, 1.0});
  Step(SetIntermediateValue{id, -3, std::nan("")});
  Step(SetIntermediateValue{id, 3, 2.0});
  ASSERT_EQ(At(id).values.size(), 2u);
  EXPECT_EQ(At(id).values[0].step, -3);
  EXPECT_TRUE(std::isnan(At(id).values[0].value));
  EXPECT_EQ(At(id).values[1].value, 2.0);
}

TEST_F(AskAndTell, ATemplateIsTakenAsItIs) {
  auto content = std::make_shared<TrialTemplate>();
  content->state = TrialState::kComplete;
  content->values = {1.5};
  content->started = TimeFromSeconds(7);
  content->ended = TimeFromSeconds(9);
  content->parameters = {{{"x", kFloat, "float"}, 0.25}, {{"y", kFloat, "float"}, 0.5}};
  content->intermediate_values = {{1, 3.0}, {2, 2.0}};
  content->attributes.user = {{"who", "\"me\""}};
  content->attributes.system = {{"fixed_params", "{}"}};
  const Trial& trial = At(Step(CreateTrial{study_, content}).trial());
  EXPECT_EQ(trial.state, TrialState::kComplete);
  EXPECT_EQ(trial.value, 1.5);
  EXPECT_EQ(trial.started, TimeFromSeconds(7));
  EXPECT_EQ(trial.ended, TimeFromSeconds(9));
  EXPECT_EQ(trial.suggested.size(), 2u);
  EXPECT_EQ(trial.values.size(), 2u);
  EXPECT_EQ(trial.attributes, content->attributes);
}

TEST_F(AskAndTell, IdsOfADeletedStudyAreNotUsedAgain) {
  const TrialId trial = Create();
  ASSERT_TRUE(Step(DeleteStudy{study_}).status.ok());
  EXPECT_TRUE(core_.state().trials.empty());
  EXPECT_TRUE(absl::IsNotFound(Step(DeleteStudy{study_}).status));
  EXPECT_TRUE(absl::IsNotFound(Step(SetIntermediateValue{trial, 1, 1}).status));
  const StudyId old = study_;
  SetUp();
  EXPECT_LT(old, study_);
  EXPECT_LT(trial, Create());
}

TEST_F(AskAndTell, AStoppedStudyGivesNoTrialUntilItIsResumed) {
  Step(StopStudy{"by clients"});
  EXPECT_TRUE(absl::IsFailedPrecondition(Step(CreateTrial{study_, nullptr}).status));
  Step(ResumeStudy{"by clients"});
  EXPECT_TRUE(Create());
}

TEST_F(AskAndTell, AStudyWhoseTrialsHaveAllEndedIsResumedWithMoreOnly) {
  StudySpec spec;
  spec.name = "three";
  spec.kind = StudyKind::kByClients;
  spec.max_trials = 1;
  study_ = Step(CreateStudy{spec, false}).study();
  Tell(Create(), TrialState::kComplete, {1});
  const auto state = [this] { return core_.state().studies.at(study_).state; };
  ASSERT_EQ(state(), StudyState::kComplete);
  for (const std::int64_t most : {0, 1}) {
    const absl::Status refused = Step(ResumeStudy{"three", most, 0}).status;
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_NE(std::string(refused.message()).find("resume it with more than 1"), std::string::npos);
  }
  EXPECT_EQ(state(), StudyState::kComplete);
  EXPECT_TRUE(Step(ResumeStudy{"three", 2, 0}).status.ok());
  EXPECT_EQ(state(), StudyState::kRunning);
  EXPECT_TRUE(Create());
}

TEST_F(AskAndTell, StudiesOfThePoolGoOnBesideAndAreNotForClients) {
  StudySpec spec = Spec(2);
  const StudyId pool = Step(CreateStudy{spec, false}).study();
  Join(2);
  ASSERT_EQ(starts_.size(), 2u);
  const TrialId on_pool = starts_.front().trial;
  EXPECT_TRUE(absl::IsPermissionDenied(Step(CreateTrial{pool, nullptr}).status));
  EXPECT_TRUE(absl::IsPermissionDenied(Tell(on_pool, TrialState::kComplete, {1}).status));
  EXPECT_TRUE(Step(SetTrialAttribute{on_pool, false, "note", "\"good\""}).status.ok());
}

TEST_F(AskAndTell, AStudyOfThePoolIsDeletedOnceItHasLeftIt) {
  const StudyId pool = Step(CreateStudy{Spec(2), false}).study();
  Join(2);
  const std::vector<StartReplicaCommand> started = starts_;
  ASSERT_EQ(started.size(), 2u);
  EXPECT_TRUE(absl::IsFailedPrecondition(Step(DeleteStudy{pool}).status)) << "it runs";
  Step(StopStudy{"s"});
  EXPECT_TRUE(absl::IsFailedPrecondition(Step(DeleteStudy{pool}).status)) << "it holds slots";
  for (const StartReplicaCommand& start : started) {
    Step(ReplicaExited{start.replica, -1, 15, "", ""});
  }
  EXPECT_TRUE(Step(DeleteStudy{pool}).status.ok());
  EXPECT_EQ(core_.state().studies.size(), 1u);
  Wait(10);
}

TEST_F(AskAndTell, ARestartedCoreGoesOn) {
  const TrialId running = Create();
  ASSERT_TRUE(Suggest(running, "x", 0.5).ok());
  Core again(core_.state(), CoreOptions{});
  const StepResult result =
      again.Step(After(now_, 60), SuggestParameter{running, 1, {"x", "other", "choices"}});
  EXPECT_TRUE(absl::IsInvalidArgument(result.reply.status)) << "distributions are remembered";
  again.Step(After(now_, 120), Tick{});
  EXPECT_EQ(again.state().trials.at(running).state, TrialState::kRunning);
  EXPECT_EQ(again.NextDeadline(), std::nullopt);
}

// ---- clients that fall silent

CoreOptions WithLease(double seconds, int max_retries) {
  CoreOptions options;
  options.client_lease = {seconds, max_retries};
  return options;
}

TEST_F(AskAndTell, WithoutALeaseAClientMayBeSilentForEver) {
  const TrialId id = Create();
  Wait(1e7);
  EXPECT_EQ(At(id).state, TrialState::kRunning);
}

TEST_F(AskAndTell, ASilentClientsTrialFailsAndOneThatWritesGoesOn) {
  const TrialId silent = Create();
  const TrialId busy = Create();
  Core core(core_.state(), WithLease(60, 0));
  core.Step(now_, Tick{});
  for (int i = 0; i < 10; ++i) {
    now_ = After(now_, 15);
    core.Step(now_, SetIntermediateValue{busy, i, 0.5});
  }
  EXPECT_EQ(core.state().trials.at(silent).state, TrialState::kFail);
  EXPECT_EQ(core.state().trials.at(busy).state, TrialState::kRunning);
  EXPECT_EQ(core.state().trials.size(), 2u) << "nothing is queued again";
  const StepResult late = core.Step(now_, SetTrialState{silent, TrialState::kComplete, {1}});
  EXPECT_TRUE(absl::IsFailedPrecondition(late.reply.status));
  EXPECT_NE(core.NextDeadline(), std::nullopt) << "the busy one is watched";
}

TEST_F(AskAndTell, ALostTrialIsQueuedAgainWithItsParametersSoOften) {
  const TrialId first = Create();
  ASSERT_TRUE(Suggest(first, "x", 0.5).ok());
  Step(SetTrialAttribute{first, true, "fixed_params", "{}"});
  Step(SetTrialAttribute{first, true, "constraints:a", "1"});
  Core core(core_.state(), WithLease(60, 2));
  TrialId running = first;
  for (int lost = 0; lost < 4; ++lost) {
    now_ = After(now_, 1);
    core.Step(now_, SetTrialState{running, TrialState::kRunning, {}});
    for (int i = 0; i < 6; ++i) core.Step(now_ = After(now_, 20), Tick{});
    EXPECT_EQ(core.state().trials.at(running).state, TrialState::kFail);
    running = core.state().last_trial;
  }
  ASSERT_EQ(core.state().trials.size(), 3u) << "queued twice";
  const Trial& last = core.state().trials.at(running);
  EXPECT_EQ(last.suggested, core.state().trials.at(first).suggested);
  const std::map<std::string, std::string> wanted = {
      {"failed_trial", "0"}, {"fixed_params", "{}"}, {"retry_history", "[0, 1]"}};
  EXPECT_EQ(last.attributes.system, wanted);
}

TEST_F(AskAndTell, ATrialThatBreaksAConstraintReachesNoTarget) {
  StudySpec spec = core_.state().studies.at(study_).spec;
  spec.name = "with_target";
  spec.target = 0.5;
  ASSERT_TRUE(Step(CreateStudy{spec, false}).status.ok());
  study_ = core_.state().FindStudy("with_target")->id;
  for (const char* violation : {"1", "0"}) {
    const TrialId trial = Create();
    ASSERT_TRUE(Step(SetTrialAttribute{trial, true, "constraints:a", violation}).status.ok());
    EXPECT_TRUE(Tell(trial, TrialState::kComplete, {0.25}).updated());
    const bool running = core_.state().studies.at(study_).state == StudyState::kRunning;
    EXPECT_EQ(running, violation == std::string("1"));
  }
}

TEST_F(AskAndTell, ConstraintsThatAreNoNumbersAreSaid) {
  const TrialId id = Create();
  const std::size_t notes = core_.state().studies.at(study_).decisions.size();
  ASSERT_TRUE(Step(SetTrialAttribute{id, true, "constraints", "[-1, 0.5]"}).status.ok());
  EXPECT_EQ(*At(id).constraints, (std::vector<double>{-1, 0.5}));
  EXPECT_EQ(core_.state().studies.at(study_).decisions.size(), notes);
  ASSERT_TRUE(Step(SetTrialAttribute{id, true, "constraints:size", "NaN"}).status.ok());
  ASSERT_EQ(At(id).constraints->size(), 3U);
  EXPECT_EQ(core_.state().studies.at(study_).decisions.back().reason,
            "\"constraints:size\" needs a number for each constraint, got NaN: the trial counts as "
            "one that breaks them");
}

}  // namespace
}  // namespace espalier
