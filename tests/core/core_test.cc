#include "tuner/core/core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "tests/core/core_fixture.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

TEST_F(CoreTest, TrialsStartOnFreeSlotsOneEach) {
  Step(CreateStudy{Spec(5), false});
  EXPECT_TRUE(core_.state().trials.empty()) << "nothing is drawn before there is a slot for it";
  Join(3);
  ASSERT_EQ(starts_.size(), 3u);
  EXPECT_EQ(starts_[0].slot, 0);
  EXPECT_EQ(starts_[2].slot, 2);
  EXPECT_EQ(core_.state().trials.size(), 3u);
  EXPECT_EQ(trial().state, TrialState::kRunning);
}

TEST_F(CoreTest, FirstReplicaFormsAGroupOfOne) {
  Step(CreateStudy{Spec(1), false});
  Join(1);
  Ready(starts_.at(0).replica);
  ASSERT_EQ(regroups_.size(), 1u);
  EXPECT_EQ(regroups_[0].membership.generation, 1);
  EXPECT_FALSE(regroups_[0].membership.abandon);
  EXPECT_TRUE(trial().resizes.empty()) << "forming the first group is no resize";
}

TEST_F(CoreTest, GroupTrainsOnUntilTheJoinerIsReady) {
  Step(CreateStudy{Spec(1), false});
  Join(2);
  const ReplicaId first = Ready(starts_.at(0).replica);
  Form(regroups_);
  Wait(3);
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_TRUE(regroups_.empty()) << "nobody is disturbed before the joiner says Ready";
  const ReplicaId second = Ready(starts_[0].replica);
  ASSERT_EQ(regroups_.size(), 2u);
  EXPECT_EQ(regroups_[0].membership.members.size(), 2u);
  EXPECT_EQ(regroups_[0].membership.members[0].replica, first)
      << "ranks of those who stay do not change";
  EXPECT_EQ(regroups_[0].membership.members[1].replica, second);
  Form(regroups_);
  ASSERT_EQ(trial().resizes.size(), 1u);
  EXPECT_EQ(trial().resizes[0].from_replicas, 1);
  EXPECT_EQ(trial().resizes[0].to_replicas, 2);
  EXPECT_EQ(trial().restarts, 0);
}

TEST_F(CoreTest, ShrinksForAWaitingTrial) {
  const auto replicas = TwoReplicas();
  StudySpec other = Spec(1);
  other.name = "other";
  Step(CreateStudy{other, false});
  ASSERT_EQ(regroups_.size(), 2u) << "the one who stays and the one who leaves are told";
  EXPECT_EQ(regroups_[0].membership.members.size(), 1u);
  EXPECT_EQ(regroups_[0].membership.members[0].replica, replicas[0]);
  EXPECT_TRUE(starts_.empty()) << "its slot is taken until the process is gone";
  Step(ReplicaExited{replicas[1], 0, 0, "", ""});
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].trial, TrialId(2));
}

TEST_F(CoreTest, LossRegroupsSurvivorsAtOnce) {
  const auto replicas = TwoReplicas();
  const std::int64_t before = trial().generation;
  Step(ReplicaExited{replicas[0], -1, 9, "", ""});
  ASSERT_EQ(regroups_.size(), 1u);
  EXPECT_TRUE(regroups_[0].membership.abandon);
  EXPECT_EQ(regroups_[0].replica, replicas[1]);
  EXPECT_EQ(trial().generation, before + 1);
  Form(regroups_);
  EXPECT_TRUE(trial().resizes.back().after_loss);
  EXPECT_EQ(trial().state, TrialState::kRunning);
}

TEST_F(CoreTest, LossOfAllGoesOnFromTheCheckpoint) {
  Step(CreateStudy{Spec(1), false});
  Join(1);
  const ReplicaId replica = Ready(starts_.at(0).replica);
  Form(regroups_);
  Step(FromReplica{replica, ReplicaCheckpoint{"/c/5"}});
  Step(ReplicaExited{replica, -1, 9, "", ""});
  EXPECT_EQ(trial().restarts, 1);
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_NE(starts_[0].replica, replica);
  EXPECT_EQ(trial().checkpoint, "/c/5");
}

TEST_F(CoreTest, HungReplicaIsALossLikeAnyOther) {
  Step(CreateStudy{Spec(1), false});
  Join(1);
  const ReplicaId replica = Ready(starts_.at(0).replica);
  Form(regroups_);
  Step(FromReplica{replica, ReplicaCheckpoint{"/c/5"}});
  Step(ReplicaExited{replica, -1, 9, "", "hung: not a word for 5.0 s"});
  EXPECT_EQ(trial().restarts, 1);
  EXPECT_EQ(trial().state, TrialState::kRunning);
  EXPECT_EQ(starts_.size(), 1u);
}

TEST_F(CoreTest, CrashWithoutCheckpointIsFailWithItsOutput) {
  Step(CreateStudy{Spec(9), false});
  Join(1);
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(starts_.size(), 1u) << i;
    Step(ReplicaExited{starts_[0].replica, 3, 0, "boom", ""});
  }
  EXPECT_EQ(trial().state, TrialState::kFail);
  EXPECT_EQ(trial().last_output, "boom");
  EXPECT_EQ(study().state, StudyState::kFailed) << "five in a row are the limit";
  EXPECT_THAT(study().reason, HasSubstr("5 trials failed one after another"));
  EXPECT_TRUE(starts_.empty());
}

TEST_F(CoreTest, AStudyOfWhoseTrialsNoneHasToldANumberHasFailed) {
  Step(CreateStudy{Spec(3), false});
  Join(1);
  const double told[] = {std::nan(""), HUGE_VAL, std::nan("")};
  for (const double value : told) {
    const StartReplicaCommand start = starts_.at(0);
    Step(TellValue{start.trial, 1, value});
    Step(ReplicaExited{start.replica, 0, 0, "", ""});
  }
  EXPECT_EQ(study().state, StudyState::kFailed);
  EXPECT_THAT(study().reason,
              HasSubstr("none of its 3 trials has told a number as \"" + study().spec.metric +
                        "\"; the last, trial 2, ended with nan"));
  Step(ResumeStudy{"s", 4, 0});
  const StartReplicaCommand start = starts_.at(0);
  Step(TellValue{start.trial, 1, 0.5});
  Step(TellValue{start.trial, 2, std::nan("")});
  Step(ReplicaExited{start.replica, 0, 0, "", ""});
  EXPECT_EQ(study().state, StudyState::kFailed) << "it has no best trial";
  EXPECT_THAT(study().reason, HasSubstr("none of its 4 trials has ended with a number as"));
  Step(ResumeStudy{"s", 5, 0});
  const StartReplicaCommand good = starts_.at(0);
  Step(TellValue{good.trial, 1, std::nan("")});
  Step(TellValue{good.trial, 2, 0.5});
  Step(ReplicaExited{good.replica, 0, 0, "", ""});
  EXPECT_EQ(study().state, StudyState::kComplete) << "one is the best";
}

TEST_F(CoreTest, AnEndedStudyTakesNoLimitBelowWhatHasRun) {
  Step(CreateStudy{Spec(2), false});
  Join(1);
  for (int i = 0; i < 2; ++i) {
    const StartReplicaCommand start = starts_.at(0);
    Step(TellValue{start.trial, 1, 0.25});
    Step(ReplicaExited{start.replica, 0, 0, "", ""});
  }
  ASSERT_EQ(study().state, StudyState::kComplete);
  EXPECT_TRUE(Step(ResumeStudy{"s", 1, 0}).status.ok());
  EXPECT_EQ(study().state, StudyState::kComplete);
  EXPECT_EQ(study().spec.max_trials, 2);
  Step(ResumeStudy{"s", 3, 0});
  EXPECT_EQ(study().state, StudyState::kRunning);
}

TEST_F(CoreTest, AStudyWhoseTrialsAllFailedHasFailed) {
  Step(CreateStudy{Spec(2), false});
  Join(1);
  for (int i = 0; i < 2; ++i) Step(ReplicaExited{starts_.at(0).replica, 3, 0, "boom", ""});
  EXPECT_EQ(study().state, StudyState::kFailed);
  EXPECT_THAT(study().reason, HasSubstr("all 2 trials failed; the last: " + trial(2).reason));
  Step(ResumeStudy{"s", 3, 0});
  EXPECT_EQ(study().state, StudyState::kRunning);
  Step(FromReplica{starts_.at(0).replica, ReplicaFinished{0.25}});
  EXPECT_EQ(study().state, StudyState::kComplete) << "one has come to a value";
}

TEST_F(CoreTest, AConfigurationWhoseTrialFailedIsNotDrawnAgain) {
  Join(1);
  for (const PluginSpec& sampler : {PluginSpec{"random", {}}, {"tpe", {{"startup_trials", 0}}}}) {
    SCOPED_TRACE(sampler.name);
    StudySpec spec = Spec(0);
    spec.name = sampler.name;
    spec.space = *SearchSpace::FromJson(R"({"a": {"_type": "choice", "_value": ["x", "y", "z"]}})");
    spec.sampler = sampler;
    Step(CreateStudy{spec, false});
    for (int trials = 0; trials < 3; ++trials) {
      ASSERT_EQ(starts_.size(), 1u);
      const StartReplicaCommand start = starts_[0];
      if (trial(start.trial.value).parameters == Parameters{{"a", "z"}}) {
        Step(ReplicaExited{start.replica, 3, 0, "", ""});
      } else {
        Step(TellValue{start.trial, 1, 0.5, true});
        Step(ReplicaExited{start.replica, 0, 0, "", ""});
      }
    }
    const Study& ended = *core_.state().FindStudy(spec.name);
    EXPECT_EQ(ended.state, StudyState::kComplete);
    EXPECT_THAT(ended.reason, HasSubstr("every configuration of the search space was tried (3"));
  }
}

TEST_F(CoreTest, AJobIsOneTrialWhateverItsSampler) {
  Join(2);
  for (const char* sampler : {"random", "tpe"}) {
    StudySpec spec = Spec(0);
    spec.name = sampler;
    spec.space = SearchSpace();
    spec.has_metric = false;
    spec.sampler = {sampler, {}};
    ASSERT_TRUE(Step(CreateStudy{spec, false}).status.ok());
    ASSERT_EQ(starts_.size(), 1u) << sampler;
    Step(ReplicaExited{starts_.at(0).replica, 0, 0, "", ""});
    EXPECT_TRUE(starts_.empty()) << sampler;
    EXPECT_EQ(core_.state().FindStudy(sampler)->state, StudyState::kComplete) << sampler;
  }
}

TEST_F(CoreTest, AStudyWhoseTrialsWereAllCancelledIsComplete) {
  Step(CreateStudy{Spec(1), false});
  Join(1);
  Step(CancelTrial{TrialId(1)});
  EXPECT_EQ(trial().state, TrialState::kFail);
  EXPECT_EQ(study().state, StudyState::kComplete);
}

TEST_F(CoreTest, SameStepCountsOnce) {
  Step(CreateStudy{Spec(1), false});
  Join(1);
  const ReplicaId replica = starts_.at(0).replica;
  Step(FromReplica{replica, ReplicaReport{1, 0.5, 0, {{"loss", 2}}}});
  Step(FromReplica{replica, ReplicaReport{1, 0.7, 0, {{"loss", 3}}}});
  Step(FromReplica{replica, ReplicaReport{2, 0.4, 0}});
  ASSERT_EQ(trial().values.size(), 2u);
  EXPECT_EQ(trial().values[0].value, 0.5);
  const std::map<std::int64_t, std::map<std::string, double>> extra = {{1, {{"loss", 2}}}};
  EXPECT_EQ(trial().extra, extra) << "further figures go with the value that stands";
}

TEST_F(CoreTest, ACheckpointDoesNotTakeTheNewersPlace) {
  Step(CreateStudy{Spec(1), false});
  Join(1);
  const ReplicaId replica = Ready(starts_.at(0).replica);
  Form(regroups_);
  Step(FromReplica{replica, ReplicaCheckpoint{"/c/20", 20}});
  Step(FromReplica{replica, ReplicaCheckpoint{"/c/10", 10}});
  EXPECT_EQ(trial().checkpoint, "/c/20") << "one that was long in the writing";
  Step(FromReplica{replica, ReplicaCheckpoint{"/c/30", 30}});
  EXPECT_EQ(trial().checkpoint, "/c/30");
}

TEST_F(CoreTest, WordsOfUnknownReplicasChangeNothing) {
  Step(CreateStudy{Spec(1), false});
  Join(1);
  const ReplicaId replica = starts_.at(0).replica;
  Step(FromReplica{replica, ReplicaFinished{0.25}});
  EXPECT_EQ(trial().state, TrialState::kComplete);
  Step(FromReplica{replica, ReplicaReport{7, 0.1, 0}});
  Step(FromReplica{ReplicaId(99), ReplicaReport{7, 0.1, 0}});
  EXPECT_TRUE(trial().values.empty());
  EXPECT_EQ(trial().value, 0.25);
}

TEST_F(CoreTest, PrunedTrialIsStoppedAndItsSlotUsedOnlyWhenFree) {
  StudySpec spec = Spec(4);
  spec.pruner = {"asha", {{"eta", 2}}};
  Step(CreateStudy{spec, false});
  Join(2);
  const auto first = starts_;
  Step(FromReplica{first[0].replica, ReplicaReport{1, 0.1, 0}});
  Step(FromReplica{first[1].replica, ReplicaReport{1, 0.9, 0}});
  EXPECT_EQ(trial(2).state, TrialState::kPruned);
  ASSERT_EQ(stops_.size(), 1u);
  EXPECT_EQ(stops_[0].replica, first[1].replica);
  EXPECT_TRUE(starts_.empty());
  Step(ReplicaExited{first[1].replica, -1, 15, "", ""});
  EXPECT_EQ(starts_.size(), 1u);
  EXPECT_THAT(trial(2).reason, HasSubstr("asha"));
}

TEST_F(CoreTest, TargetEndsTheStudy) {
  StudySpec spec = Spec(4);
  spec.target = 0.2;
  Step(CreateStudy{spec, false});
  Join(2);
  Step(FromReplica{starts_.at(0).replica, ReplicaReport{1, 0.15, 0}});
  EXPECT_EQ(study().state, StudyState::kComplete);
  EXPECT_EQ(trial(1).state, TrialState::kComplete);
  EXPECT_EQ(trial(2).state, TrialState::kPruned);
  EXPECT_THAT(study().reason, HasSubstr("target"));
}

TEST_F(CoreTest, AStudyOfOneTrialEndsWithIt) {
  Step(CreateStudy{Spec(1), false});
  Join(1);
  const ReplicaId replica = starts_.at(0).replica;
  Step(FromReplica{replica, ReplicaFinished{0.25}});
  Step(ReplicaExited{replica, 0, 0, "", ""});
  EXPECT_EQ(study().state, StudyState::kComplete);
  EXPECT_EQ(study().reason, "its trial has ended");
}

TEST_F(CoreTest, TimeLimitEndsTheStudy) {
  StudySpec spec = Spec(4);
  spec.time_limit_s = 10;
  Step(CreateStudy{spec, false});
  Join(1);
  Wait(9);
  EXPECT_EQ(study().state, StudyState::kRunning);
  ASSERT_TRUE(core_.NextDeadline().has_value());
  EXPECT_LE(*core_.NextDeadline(), After(now_, 1.0));
  Wait(2);
  EXPECT_EQ(study().state, StudyState::kComplete);
}

TEST_F(CoreTest, StopPausesElasticTrialsByARegroupToNobody) {
  const auto replicas = TwoReplicas();
  Step(StopStudy{"s"});
  ASSERT_EQ(regroups_.size(), 2u);
  EXPECT_TRUE(regroups_[0].membership.members.empty());
  for (const ReplicaId replica : replicas) Step(ReplicaExited{replica, 0, 0, "", ""});
  EXPECT_EQ(trial().state, TrialState::kPaused);
  EXPECT_EQ(core_.SlotsHeld(), 0);
  Step(ResumeStudy{"s", 0, 0});
  EXPECT_EQ(starts_.size(), 1u);
  EXPECT_EQ(trial().state, TrialState::kRunning);
}

TEST_F(CoreTest, PinHoldsATrialAtItsSlots) {
  TwoReplicas();
  ASSERT_TRUE(Step(PinTrial{"s", 0, 1}).status.ok());
  ASSERT_FALSE(regroups_.empty());
  EXPECT_EQ(regroups_[0].membership.members.size(), 1u);
  EXPECT_EQ(Step(PinTrial{"s", 3, 1}).status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Step(PinTrial{"s", 0, 9}).status.code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(CoreTest, PinSaysWhichTrialsThereAre) {
  Step(CreateStudy{Spec(2), false});
  EXPECT_EQ(Step(PinTrial{"s", 0, 1}).status.message(),
            "study \"s\" has no trial 0; none has been created yet");
  Join(2);
  EXPECT_EQ(Step(PinTrial{"s", 2, 1}).status.message(),
            "study \"s\" has no trial 2; its trials are 0 to 1");
}

TEST_F(CoreTest, SilentAgentLosesItsReplicasOnlyAfterItsLease) {
  TwoReplicas();
  Step(AgentGone{node_});
  Wait(5);
  EXPECT_EQ(core_.SlotsHeld(), 2);
  Wait(6);
  EXPECT_EQ(core_.SlotsHeld(), 0);
  EXPECT_EQ(trial().state, TrialState::kPaused);
}

TEST_F(CoreTest, RestartedCoreAdoptsLivingReplicasWithoutRestartingThem) {
  const auto replicas = TwoReplicas();
  Core restarted(core_.state(), CoreOptions{});
  const std::int64_t before = trial().generation;
  AgentHello hello{"node", 2, {}};
  for (int slot = 0; slot < 2; ++slot) {
    const ReplicaId id = replicas[static_cast<std::size_t>(slot)];
    hello.replicas.push_back(
        {id, TrialId(1), slot, before, ReplicaReady{"host:1", {64, 64, 1, 64, true}, 10}});
  }
  const StepResult result = restarted.Step(After(now_, 1), hello);
  EXPECT_EQ(result.commands.size(), 2u);
  for (const Command& command : result.commands) {
    const auto* regroup = std::get_if<RegroupCommand>(&command);
    ASSERT_NE(regroup, nullptr) << "nothing is started or stopped";
    EXPECT_EQ(regroup->membership.generation, before + 1);
    EXPECT_TRUE(regroup->membership.abandon);
  }
  EXPECT_EQ(restarted.SlotsHeld(), 2);
}

template <typename Wanted>
std::vector<Wanted> Commands(const StepResult& result) {
  std::vector<Wanted> found;
  for (const Command& command : result.commands) {
    if (const auto* c = std::get_if<Wanted>(&command)) found.push_back(*c);
  }
  return found;
}

TEST_F(CoreTest, ReplicasOfBeforeARestoreAreEndedAndTheirTrialIsStartedAgain) {
  const auto replicas = TwoReplicas();
  TunerState state = core_.state();
  state.replica_ids_below = state.replica_ids_from = 5000;
  Core restored(std::move(state), CoreOptions{});
  AgentHello hello{"node", 2, {}};
  for (const ReplicaId id : replicas) {
    hello.replicas.push_back({id, TrialId(1), static_cast<int>(hello.replicas.size()),
                              trial().generation,
                              ReplicaReady{"host:1", {64, 64, 1, 64, true}, 10}});
  }
  // One of a trial that is not known any more.
  hello.replicas.push_back({ReplicaId(77), TrialId(9), 1, 1, {}});
  StepResult result = restored.Step(After(now_, 1), hello);
  std::set<ReplicaId> ended;
  for (const auto& stop : Commands<StopReplicaCommand>(result)) ended.insert(stop.replica);
  EXPECT_EQ(ended, (std::set<ReplicaId>{replicas[0], replicas[1], ReplicaId(77)}));
  EXPECT_TRUE(Commands<RegroupCommand>(result).empty());
  EXPECT_TRUE(Commands<StartReplicaCommand>(result).empty()) << "their slots are not free yet";
  std::vector<StartReplicaCommand> starts;
  for (const ReplicaId id : replicas) {
    result = restored.Step(After(now_, 2), ReplicaExited{id, 0, 9, "", ""});
    for (auto& start : Commands<StartReplicaCommand>(result)) starts.push_back(std::move(start));
  }
  for (int i = 3; i < 30 && starts.empty(); ++i) {
    starts = Commands<StartReplicaCommand>(restored.Step(After(now_, i), Tick{}));
  }
  ASSERT_FALSE(starts.empty());
  EXPECT_GE(starts[0].replica.value, 5000);
  const Trial& again = restored.state().trials.at(TrialId(1));
  EXPECT_EQ(again.state, TrialState::kRunning);
  EXPECT_EQ(again.restarts, 0) << "the program is not at fault";
}

TEST_F(CoreTest, AReplicaWithAnIdThatIsAnothersIsEnded) {
  const auto replicas = TwoReplicas();
  Step(AgentHello{"other", 1, {{replicas[0], TrialId(1), 0, 1, {}}}});
  ASSERT_EQ(stops_.size(), 1U);
  EXPECT_EQ(stops_[0].replica, replicas[0]);
  EXPECT_EQ(stops_[0].node, NodeId(2)) << "not the one that has it";
  // At home, but said to be of another trial.
  Step(AgentHello{
      "node", 2, {{replicas[0], TrialId(9), 0, 1, {}}, {replicas[1], TrialId(1), 1, 1, {}}}});
  ASSERT_EQ(stops_.size(), 1U);
  EXPECT_EQ(stops_[0].replica, replicas[0]);
  EXPECT_EQ(stops_[0].node, node_);
}

TEST_F(CoreTest, ATrialThatHasReportedNothingHasFailedUnlessItsStudyHasNoMetric) {
  for (const bool has_metric : {true, false}) {
    StudySpec spec = Spec(1);
    spec.name = has_metric ? "study" : "job";
    spec.has_metric = has_metric;
    Step(CreateStudy{spec, false});
    if (has_metric) Join(1);
    const ReplicaId replica = Ready(starts_.at(0).replica);
    Form(regroups_);
    Step(FromReplica{replica, ReplicaFinished{std::nullopt, ""}});
    Step(ReplicaExited{replica, 0, 0, "", ""});
    EXPECT_EQ(trial(has_metric ? 1 : 2).state,
              has_metric ? TrialState::kFail : TrialState::kComplete);
  }
}

TEST_F(CoreTest, AFinalValueThatIsNotFiniteFailsTheTrial) {
  Step(CreateStudy{Spec(1), false});
  Join(1);
  const ReplicaId replica = Ready(starts_.at(0).replica);
  Form(regroups_);
  Step(FromReplica{replica, ReplicaReport{1, 0.5, 0}});
  Step(FromReplica{replica, ReplicaFinished{std::numeric_limits<double>::infinity()}});
  EXPECT_EQ(trial().state, TrialState::kFail);
  EXPECT_EQ(trial().reason, "told inf as its final value, which must be a finite number");
  EXPECT_EQ(trial().value, std::nullopt);
}

TEST_F(CoreTest, TheProgramsOwnVerdictFailsTheTrialForGood) {
  Step(CreateStudy{Spec(1), false});
  Join(1);
  const ReplicaId replica = Ready(starts_.at(0).replica);
  Form(regroups_);
  Step(FromReplica{replica, ReplicaReport{1, 0.5, 0}});
  Step(FromReplica{replica, ReplicaCheckpoint{"/c/1"}});
  Step(FromReplica{replica, ReplicaFinished{std::nullopt, "the loss is not finite at step 7"}});
  EXPECT_EQ(trial().state, TrialState::kFail) << "although it has reported a value";
  EXPECT_EQ(trial().reason, "the loss is not finite at step 7");
  EXPECT_EQ(trial().value, std::nullopt);
  Step(ReplicaExited{replica, 1, 0, "", ""});
  EXPECT_TRUE(starts_.empty()) << "it is not started again from its checkpoint";
  EXPECT_EQ(trial().restarts, 0);
}

TEST_F(CoreTest, AHungReplicaThatWasKilledCountsAsLost) {
  Step(CreateStudy{Spec(1), false});
  Join(1);
  const ReplicaId replica = Ready(starts_.at(0).replica);
  Form(regroups_);
  Step(FromReplica{replica, ReplicaCheckpoint{"/c/1"}});
  Step(ReplicaExited{replica, -1, 9, "", "hung: not heard of for 10 s"});
  EXPECT_EQ(trial().restarts, 1) << "an error of its agent's does not mean that it cannot start";
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_THAT(study().decisions.at(study().decisions.size() - 2).reason, HasSubstr("hung"));
}

TEST_F(CoreTest, FiguresOutliveTheGroup) {
  Step(CreateStudy{Spec(1), false});
  Join(1);
  const ReplicaId replica = Ready(starts_.at(0).replica);
  Form(regroups_);
  ReplicaProgress progress;
  progress.global_batch_size = 64;
  progress.figures[Figure::kGoodput] = 123;
  progress.noise = {2, 4};
  progress.figures[Figure::kMemory] = 1 << 20;
  progress.profile.push_back({{1, 1, 64}, 10, 1.0, 10, 1.5, 0.5});
  Step(FromReplica{replica, progress});
  EXPECT_EQ(trial().figures, TrainingFigures{}) << "written down with values, not every second";
  EXPECT_EQ(core_.Activity(TrialId(1)).figures[Figure::kGoodput], 123)
      << "the trial's own, not the model's";
  Step(FromReplica{replica, ReplicaReport{1, 0.5, 0}});
  EXPECT_EQ(trial().figures, core_.Activity(TrialId(1)).figures);
  EXPECT_DOUBLE_EQ(trial().figures[Figure::kStepTime], 0.25);
  EXPECT_DOUBLE_EQ(trial().figures[Figure::kSyncShare], 0.2);
  EXPECT_DOUBLE_EQ(trial().figures[Figure::kNoiseScale], 128);
  progress.figures[Figure::kGoodput] = 456;
  Step(FromReplica{replica, progress});
  Step(FromReplica{replica, ReplicaFinished{0.25, ""}});
  EXPECT_EQ(trial().figures[Figure::kGoodput], 456);
  EXPECT_EQ(core_.Activity(TrialId(1)).figures[Figure::kGoodput], 456);
  EXPECT_FALSE(core_.Activity(TrialId(1)).training);
}

TEST_F(CoreTest, AResizeKeepsThePartsOfItsLongestPause) {
  Step(CreateStudy{Spec(1), false});
  Join(2);
  const ReplicaId first = Ready(starts_.at(0).replica);
  Form(regroups_);
  Wait(3);
  const ReplicaId second = Ready(starts_.at(0).replica);
  const std::int64_t generation = regroups_.at(0).membership.generation;
  Step(FromReplica{first, ReplicaRegrouped{generation, 0, 0.020, 0.004, 0.010}});
  Step(FromReplica{second, ReplicaRegrouped{generation, 0, 0.015, 0.012, 0.001}});
  ASSERT_EQ(trial().resizes.size(), 1u);
  EXPECT_EQ(trial().resizes[0].pause_s, 0.020);
  EXPECT_EQ(trial().resizes[0].form_s, 0.004);
  EXPECT_EQ(trial().resizes[0].broadcast_s, 0.010);
}

TEST_F(CoreTest, HowGradientsOnGpusGoIsRecordedWhenItChanges) {
  const auto form_by = [this](const std::string& transport) {
    ASSERT_FALSE(regroups_.empty());
    const Membership membership = regroups_.front().membership;
    for (const Member& member : membership.members) {
      ReplicaRegrouped regrouped{membership.generation, 0, 0.01};
      regrouped.transport = transport;
      Step(FromReplica{member.replica, regrouped});
    }
  };
  const auto records = [this](const std::string& reason) {
    return std::count_if(study().decisions.begin(), study().decisions.end(),
                         [&](const Decision& decision) { return decision.reason == reason; });
  };
  Step(CreateStudy{Spec(1), false});
  Join(3);
  Ready(starts_.at(0).replica);
  form_by("");
  Wait(3);
  const ReplicaId second = Ready(starts_.at(0).replica);
  form_by("by NCCL");
  EXPECT_EQ(records("gradients go by NCCL"), 1);
  Step(ReplicaExited{second, 1, 0, "", ""});
  form_by("by NCCL");
  EXPECT_EQ(records("gradients go by NCCL"), 1);
  EXPECT_EQ(records("gradients go "), 0);
}

TEST_F(CoreTest, EventsThatSettleTogetherAllReachTheScheduler) {
  Join(1);
  StudySpec by_clients = Spec(1);
  by_clients.name = "clients";
  by_clients.kind = StudyKind::kByClients;
  core_.Handle(now_, CreateStudy{Spec(1), false});
  core_.Handle(now_, CreateStudy{by_clients, false});
  EXPECT_EQ(core_.Settle(now_).commands.size(), 1u) << "the first study's trial starts";
}

TEST_F(CoreTest, ValidateNamesTheKeyAndTheKnown) {
  StudySpec spec = Spec(1);
  spec.sampler.name = "tpa";
  EXPECT_THAT(std::string(Validate(spec).message()),
              ::testing::AllOf(HasSubstr("\"sampler\""), HasSubstr("tpa"), HasSubstr("tpe")));
  spec = Spec(1);
  spec.policy.name = "x";
  EXPECT_THAT(std::string(Validate(spec).message()), HasSubstr("promise_goodput"));
  spec = Spec(1);
  spec.pruner.name = "x";
  EXPECT_THAT(std::string(Validate(spec).message()), HasSubstr("asha"));
}

}  // namespace
}  // namespace espalier
