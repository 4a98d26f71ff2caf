#include "tuner/api/convert.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/api/direct_tuner.h"
#include "tuner/api/json.h"
#include "tuner/messages/wire/figures_wire.h"

namespace espalier {
namespace {

using testing::HasSubstr;

TEST(Convert, StatesHaveTheNamesOfTheCore) {
  for (const StudyState state :
       {StudyState::kRunning, StudyState::kStopped, StudyState::kComplete, StudyState::kFailed}) {
    EXPECT_EQ(v1::StudyState_Name(ToProto(state)), "STUDY_" + std::string(ToString(state)));
  }
  for (const TrialState state : {TrialState::kWaiting, TrialState::kRunning, TrialState::kPaused,
                                 TrialState::kComplete, TrialState::kPruned, TrialState::kFail}) {
    EXPECT_EQ(v1::TrialState_Name(ToProto(state)), "TRIAL_" + std::string(ToString(state)));
  }
}

TEST(Convert, ATrialKeepsItsCurveSpansAndResizes) {
  TunerState state;
  state.Apply(StudyCreated{StudyId(1), {}, TimeFromSeconds(1)});
  state.Apply(TrialCreated{TrialId(5), StudyId(1), 0, {{"lr", 0.5}}, TimeFromSeconds(2)});
  state.Apply(TrialStateChanged{TrialId(5), TrialState::kRunning, TimeFromSeconds(3), "", {}, ""});
  state.Apply(
      ValueReported{TrialId(5), {1, 0.75, 10, TimeFromSeconds(4), 64, 0.5F, 300}, {{"loss", 1.5}}});
  state.Apply(SlotsHeldChanged{TrialId(5), TimeFromSeconds(5), {{NodeId(2), 1}}});
  state.Apply(ResizeMeasured{TrialId(5), {TimeFromSeconds(6), 2, 1, 2, 0.01, true, 0.003, 0.002}});
  TrainingFigures figures;
  figures[Figure::kStepTime] = 0.25;
  figures[Figure::kGoodput] = 300;
  figures[Figure::kSkippedSteps] = 2;
  state.Apply(FiguresRecorded{TrialId(5), figures});
  const Core core(state, CoreOptions{});
  const std::map<ReplicaId, int> no_pids;
  const std::map<std::string, std::vector<NodeGpu>> no_gpus;
  const std::map<std::string, std::string> no_folders;
  const View view{core, TimeFromSeconds(10), no_pids, no_gpus, no_folders, no_folders};

  const v1::Trial trial = ToProto(state.trials.at(TrialId(5)), view);
  EXPECT_EQ(trial.id(), 5);
  EXPECT_EQ(trial.values(0).extra().at("loss"), 1.5);
  EXPECT_EQ(trial.values(0).promise(), 0.5F);
  EXPECT_EQ(trial.values(0).goodput(), 300);
  EXPECT_EQ(trial.state(), v1::TRIAL_RUNNING);
  ASSERT_EQ(trial.parameters_size(), 1);
  EXPECT_EQ(trial.parameters(0).json(), "0.5");
  EXPECT_EQ(trial.created_at(), 2);
  EXPECT_EQ(trial.started_at(), 3);
  EXPECT_EQ(trial.ended_at(), 0);
  EXPECT_EQ(trial.step(), 1);
  EXPECT_EQ(trial.batch_size(), 64);
  EXPECT_EQ(trial.value(), 0.75);
  ASSERT_EQ(trial.values_size(), 1);
  EXPECT_EQ(trial.values(0).at(), 4);
  ASSERT_EQ(trial.spans_size(), 1);
  EXPECT_EQ(trial.spans(0).to(), 0);
  EXPECT_EQ(trial.spans(0).slots(0).node_id(), 2);
  ASSERT_EQ(trial.resizes_size(), 1);
  EXPECT_TRUE(trial.resizes(0).after_loss());
  EXPECT_EQ(trial.resizes(0).form_s(), 0.003);
  EXPECT_EQ(trial.resizes(0).broadcast_s(), 0.002);
  EXPECT_EQ(trial.step_time_s(), 0.25) << "of a trial without a group: what it told last";
  EXPECT_EQ(trial.goodput(), 300);
  EXPECT_EQ(trial.skipped_steps(), 2);

  const v1::Trial brief = ToProto(state.trials.at(TrialId(5)), view, /*with_curves=*/false);
  EXPECT_EQ(brief.values_size() + brief.spans_size() + brief.resizes_size(), 0);
  EXPECT_EQ(brief.value(), 0.75);
}

TEST(Convert, ADecisionHasItsFiguresWhereItHasAny) {
  Decision decision;
  EXPECT_FALSE(ToProto(decision).has_figures());
  decision.figures = AllocationFigures{.promise = 0.5F,
                                       .speedup_before = 1,
                                       .speedup_after = 1.75F,
                                       .gain = 0.375F,
                                       .resize_cost_s = 0.1F,
                                       .from = {{TrialId(7), 2, 0.25F}}};
  const v1::DecisionFigures figures = ToProto(decision).figures();
  EXPECT_EQ(figures.promise(), 0.5F);
  EXPECT_EQ(figures.speedup_before(), 1);
  EXPECT_EQ(figures.speedup_after(), 1.75F);
  EXPECT_EQ(figures.gain(), 0.375F);
  EXPECT_EQ(figures.resize_cost_s(), 0.1F);
  ASSERT_EQ(figures.from_size(), 1);
  EXPECT_EQ(figures.from(0).trial_id(), 7);
  EXPECT_EQ(figures.from(0).slots(), 2);
  EXPECT_EQ(figures.from(0).promise(), 0.25F);
}

TEST(Convert, ATrialShowsTheCommandThatItRunsOnceItHasStarted) {
  StudySpec spec;
  spec.name = "mnist";
  spec.command = {"train", "--lr={lr}", "{seed}", "--out", "{trial_dir}/out", "{checkpoint_dir}"};
  spec.seed = 4;
  TunerState state;
  state.nodes[NodeId(2)] = "oak";
  state.Apply(StudyCreated{StudyId(1), spec, TimeFromSeconds(1)});
  state.Apply(TrialCreated{TrialId(5), StudyId(1), 0, {{"lr", 2.0}}, TimeFromSeconds(2)});
  const Trial waits = state.trials.at(TrialId(5));
  state.Apply(TrialStateChanged{TrialId(5), TrialState::kRunning, TimeFromSeconds(3), "", {}, ""});
  state.Apply(SlotsHeldChanged{TrialId(5), TimeFromSeconds(5), {{NodeId(2), 1}}});
  const Core core(state, CoreOptions{});
  const std::map<ReplicaId, int> no_pids;
  const std::map<std::string, std::vector<NodeGpu>> no_gpus;
  const std::map<std::string, std::string> none;
  std::map<std::string, std::string> folders = {{"oak", "/pool"}};
  const View view{core, TimeFromSeconds(10), no_pids, no_gpus, folders, none};
  const Trial& runs = state.trials.at(TrialId(5));
  const auto words = testing::ElementsAre("train", "--lr=2", "4", "--out",
                                          "/pool/mnist/trial-0/out", "{checkpoint_dir}");
  EXPECT_THAT(ToProto(runs, view).command(), words);
  EXPECT_THAT(ToRecord(runs, view).command(), words);
  EXPECT_EQ(ToProto(runs, view, /*with_curves=*/false).command_size(), 0);
  EXPECT_EQ(ToRecord(waits, view).command_size(), 0);
  folders.clear();  // of a node that is gone
  EXPECT_EQ(ToProto(runs, view).command(4), "{trial_dir}/out");
}

// A walk over the trials would find that there is one, and that it has no value.
TEST(Convert, AStudyIsShownByItsTallyAndItsText) {
  TunerState state;
  StudySpec spec;
  spec.wording.text = "its text";
  state.Apply(StudyCreated{StudyId(1), spec, TimeFromSeconds(1)});
  state.Apply(TrialCreated{TrialId(5), StudyId(1), 0, {}, TimeFromSeconds(2)});
  Trial other;
  other.number = 1;
  other.state = TrialState::kComplete;
  other.value = 0.5;
  state.tallies.at(StudyId(1)).Add(spec, other);
  state.tallies.at(StudyId(1)).Rank(other);
  state.tallies.at(StudyId(1))
      .AddSpan({TimeFromSeconds(2), TimeFromSeconds(4), {{NodeId(1), 0}}}, {});
  const Core core(state, CoreOptions{});
  const std::map<ReplicaId, int> no_pids;
  const std::map<std::string, std::vector<NodeGpu>> no_gpus;
  const std::map<std::string, std::string> no_folders;
  const View view{core, TimeFromSeconds(10), no_pids, no_gpus, no_folders, no_folders};

  const v1::Study study = ToProto(state.studies.at(StudyId(1)), view);
  EXPECT_EQ(study.trials_by_state().at("WAITING"), 1);
  EXPECT_EQ(study.trials_by_state().at("COMPLETE"), 1);
  EXPECT_EQ(study.trials_by_state().size(), 2u);
  EXPECT_EQ(study.best_trial(), 1);
  EXPECT_EQ(study.best_value(), 0.5);
  EXPECT_EQ(study.slot_seconds(), 2);
  EXPECT_EQ(study.study_json(), "its text");
}

TEST(Convert, ATrialsMessageHasEveryFigure) {
  TrainingFigures figures;
  double next = 1;
  for (const FigureRow& row : kFigureRows) figures[row.figure] = next++;
  v1::Trial trial;
  SetFigures(figures, trial);
  EXPECT_EQ(FiguresIn(trial), figures);
  const std::string json = MessageToJson(trial);
  for (const FigureRow& row : kFigureRows) {
    EXPECT_THAT(json,
                HasSubstr(absl::StrCat("\"", std::string(row.name), "\":", figures[row.figure])));
  }
  std::set<std::string> by_name;  // the others are said as the first protocol says them
  for (const auto& [name, value] : trial.figures()) by_name.insert(name);
  EXPECT_THAT(by_name, testing::ElementsAre("gradient_transport", "growth_step_s"));
}

// A study that has run from second 0 with two trials, the first of them ended.
struct Running {
  explicit Running(std::int64_t max_step = 0) {
    StudySpec spec;
    spec.max_step = max_step;
    state.Apply(StudyCreated{StudyId(1), spec, Time{}});
    for (const int number : {0, 1}) {
      const TrialId id(number + 1);
      state.Apply(TrialCreated{id, StudyId(1), number, {}, Time{}});
      state.Apply(TrialStateChanged{id, TrialState::kRunning, Time{}});
    }
    state.Apply(TrialStateChanged{TrialId(1), TrialState::kComplete, Time{}});
    study = state.studies.at(StudyId(1));
  }
  double RemainingAt(double now_s) const {
    return RemainingSeconds(study, state, TimeFromSeconds(now_s));
  }
  Study study;
  TunerState state;
};

TEST(RemainingSeconds, IsUnknownWithoutLimits) { EXPECT_LT(Running().RemainingAt(10), 0); }

TEST(RemainingSeconds, FollowsTheTimeLimit) {
  Running running;
  running.study.spec.time_limit_s = 30;
  EXPECT_DOUBLE_EQ(running.RemainingAt(10), 20);
  EXPECT_DOUBLE_EQ(running.RemainingAt(40), 0);
}

TEST(RemainingSeconds, FollowsThePaceOfTrialsAndCountsHalfOfAHalfDoneOne) {
  Running running(10);
  running.study.spec.max_trials = 4;
  EXPECT_DOUBLE_EQ(running.RemainingAt(10), 30);
  running.state.Apply(ValueReported{TrialId(2), {5, 0.1, 0, {}, 0}});
  EXPECT_DOUBLE_EQ(running.RemainingAt(12), 12 / 1.5 * 2.5);
  running.study.spec.time_limit_s = 13;
  EXPECT_DOUBLE_EQ(running.RemainingAt(12), 1);
}

// The clone that waits has told nothing, and will go on where the one was that it replaces.
TEST(RemainingSeconds, OfAPopulationFollowsHowFarItsMembersAre) {
  StudySpec spec;
  spec.max_step = 10;
  spec.max_trials = 2;
  spec.population.interval = 2;
  TunerState state;
  state.Apply(StudyCreated{StudyId(1), spec, Time{}});
  for (const int number : {0, 1, 2}) {
    state.Apply(TrialCreated{TrialId(number + 1), StudyId(1), number, {}, Time{}});
  }
  for (const int member : {1, 2}) {
    state.Apply(TrialStateChanged{TrialId(member), TrialState::kRunning, Time{}});
    state.Apply(ValueReported{TrialId(member), {2, 0.1, 0, {}, 0}});
  }
  state.Apply(TrialCloned{TrialId(3), {0, 0}});
  state.Apply(TrialStateChanged{TrialId(2), TrialState::kPruned, Time{}});
  const Study& study = state.studies.at(StudyId(1));
  EXPECT_DOUBLE_EQ(RemainingSeconds(study, state, TimeFromSeconds(5)), 20);
  state.Apply(ValueReported{TrialId(3), {3, 0.1, 0, {}, 0}});
  EXPECT_DOUBLE_EQ(RemainingSeconds(study, state, TimeFromSeconds(6)), 18);
}

TEST(RemainingSeconds, IsZeroForAnEndedStudy) {
  Running running;
  running.study.state = StudyState::kComplete;
  EXPECT_EQ(running.RemainingAt(10), 0);
}

}  // namespace
}  // namespace espalier
