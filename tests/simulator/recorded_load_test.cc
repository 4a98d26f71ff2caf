#include "tuner/simulator/recorded_load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "search_spaces/formats/optuna/constraints.h"
#include "tuner/simulator/emulated_load.h"
#include "tuner/simulator/poolbench_load.h"
#include "tuner/simulator/study_simulator.h"

namespace espalier {
namespace {

StudySimulationOptions Slots(int slots) {
  StudySimulationOptions options;
  options.pool.nodes = {{"node", slots}};
  return options;
}

// A small study, simulated and taken for a record.
StudySimulation Record(const std::string& policy, int slots) {
  const auto load = MakePoolbenchLoad({.seed = 4});
  StudySpec spec = load->Study();
  spec.max_trials = 6;
  spec.policy = {policy, {}};
  auto record = SimulateStudy(*load, spec, Slots(slots));
  EXPECT_TRUE(record.ok()) << record.status();
  return *std::move(record);
}

StudySimulation Replay(RecordedLoad& load, const std::string& policy, int slots) {
  StudySpec spec = load.Study();
  spec.policy = {policy, {}};
  auto replay = SimulateStudy(load, spec, Slots(slots));
  EXPECT_TRUE(replay.ok()) << replay.status();
  return *std::move(replay);
}

TEST(RecordedLoad, ReplaysTheRecordedCurvesAndTimes) {
  const StudySimulation record = Record("fixed", 2);
  auto load = MakeRecordedLoad(record.state, "poolbench");
  ASSERT_TRUE(load.ok()) << load.status();
  const StudySimulation replay = Replay(**load, "fixed", 2);
  EXPECT_NEAR(replay.figures.finish_s, record.figures.finish_s, 0.01 * record.figures.finish_s);
  EXPECT_EQ((*load)->BeyondRecord(replay.state), 0);
  for (const auto& [id, trial] : record.state.trials) {
    const Trial& again = replay.state.trials.at(id);
    EXPECT_EQ(again.state, trial.state);
    EXPECT_EQ(again.parameters, trial.parameters);
    ASSERT_EQ(again.values.size(), trial.values.size());
    for (std::size_t i = 0; i < trial.values.size(); ++i) {
      EXPECT_EQ(again.values[i].step, trial.values[i].step);
      EXPECT_EQ(again.values[i].value, trial.values[i].value);
    }
  }
}

TEST(RecordedLoad, AnotherPolicyMayFinishSooner) {
  const StudySimulation record = Record("promise_goodput", 6);
  auto load = MakeRecordedLoad(record.state, "poolbench");
  ASSERT_TRUE(load.ok()) << load.status();
  EXPECT_NEAR((*load)->MeanPause().value_or(-1), 1, 1e-9);
  const StudySimulation fixed = Replay(**load, "fixed", 6);
  const StudySimulation elastic = Replay(**load, "promise_goodput", 6);
  EXPECT_LT(elastic.figures.finish_s, fixed.figures.finish_s);
  // What the trials were like on one slot is worked out from what they were like on several.
  EXPECT_NEAR(elastic.figures.finish_s, record.figures.finish_s, 0.3 * record.figures.finish_s);
}

TEST(RecordedLoad, SaysWhatWentPastTheRecord) {
  StudySimulation record = Record("fixed", 2);
  for (auto& [id, trial] : record.state.trials) {
    trial.state = TrialState::kPruned;
    trial.values.resize(std::min<std::size_t>(trial.values.size(), 5));
  }
  auto load = MakeRecordedLoad(record.state, "poolbench");
  ASSERT_TRUE(load.ok()) << load.status();
  auto& first = record.state.trials.begin()->second;
  first.values.resize(2);
  auto shorter = MakeRecordedLoad(record.state, "poolbench");
  StudySpec spec = (*shorter)->Study();
  spec.pruner = {"none", {}};
  const auto replay = SimulateStudy(**shorter, spec, Slots(2));
  ASSERT_TRUE(replay.ok()) << replay.status();
  EXPECT_GE((*shorter)->BeyondRecord(replay->state), 1);
  const Trial& held = replay->state.trials.begin()->second;
  EXPECT_EQ(held.values.back().value, first.values.back().value);
}

// The record, with a figure that is told in every third step, by number of the trial; trial 2 tells
// none.
TunerState WithSizes(TunerState state) {
  Study& study = state.studies.begin()->second;
  study.spec.pruner = {"none", {}};
  study.spec.constraints = {{"size", false, 3}};
  for (auto& [id, trial] : state.trials) {
    if (trial.number == 2) continue;
    for (std::size_t i = 0; i < trial.values.size(); i += 3) {
      trial.extra[trial.values[i].step] = {{"size", trial.number}, {"loss", 0.5}};
    }
  }
  return state;
}

TEST(RecordedLoad, TellsTheFiguresThatItsStudyNeeds) {
  const TunerState record = WithSizes(Record("fixed", 2).state);
  auto load = MakeRecordedLoad(record, "poolbench");
  ASSERT_TRUE(load.ok()) << load.status();
  const StudySimulation replay = Replay(**load, "fixed", 2);
  EXPECT_EQ(replay.figures.complete, 6);
  for (const auto& [id, trial] : replay.state.trials) {
    EXPECT_TRUE(trial.extra.contains(trial.values.back().step)) << "all that is needed, at its end";
    EXPECT_EQ(trial.extra.contains(trial.values.front().step), trial.number != 2);
    EXPECT_FALSE(trial.extra.contains(trial.values[1].step)) << "it was not told there";
    for (const auto& [step, figures] : trial.extra) {
      ASSERT_EQ(figures.size(), 1U) << "what the study does not need is left out";
      EXPECT_EQ(std::isnan(figures.at("size")), trial.number == 2);
    }
    const bool keeps = trial.number != 2 && trial.number <= 3;
    EXPECT_EQ(KeepsTo(*trial.constraints), keeps) << trial.number;
  }
  EXPECT_LE(replay.figures.best_trial, 3);
  EXPECT_NE(replay.figures.best_trial, 2);
}

TEST(RecordedLoad, OfAPopulationHasItsClonesAsTrials) {
  TunerState record = Record("fixed", 2).state;
  record.studies.begin()->second.spec.pruner = {"none", {}};
  record.studies.begin()->second.spec.population.interval = 2;
  auto load = MakeRecordedLoad(record, "poolbench");
  ASSERT_TRUE(load.ok()) << load.status();
  EXPECT_FALSE((*load)->Study().population.on());
  EXPECT_EQ(Replay(**load, "fixed", 2).figures.complete, 6);
}

TEST(RecordedLoad, MayHaveSeveralMetrics) {
  TunerState record = WithSizes(Record("fixed", 2).state);
  Study& study = record.studies.begin()->second;
  study.spec.constraints.clear();
  study.spec.other_metrics = {"size"};
  study.spec.directions.push_back(Direction::kMinimize);
  auto load = MakeRecordedLoad(record, "poolbench");
  ASSERT_TRUE(load.ok()) << load.status();
  const StudySimulation replay = Replay(**load, "fixed", 2);
  EXPECT_EQ(replay.figures.complete, 6);
  for (const auto& [id, trial] : replay.state.trials) {
    ASSERT_EQ(trial.other_values.size(), 1U);
    EXPECT_EQ(std::isnan(trial.other_values[0]), trial.number == 2);
  }
  EXPECT_GT(replay.promise.count, 0);
}

TEST(RecordedLoad, NamesTheTrialsOfTheRecord) {
  StudySimulation record = Record("fixed", 2);
  const Study& study = record.state.studies.begin()->second;
  // The first one reported nothing, and is left out.
  record.state.trials.at(study.trials[0]).values.clear();
  auto load = MakeRecordedLoad(record.state, "poolbench");
  ASSERT_TRUE(load.ok()) << load.status();
  EXPECT_EQ((*load)->study_id(), study.id);
  const StudySimulation replay = Replay(**load, "fixed", 2);
  ASSERT_EQ(replay.figures.trials, 5);
  for (const auto& [id, trial] : replay.state.trials) {
    const RecordedLoad::Origin origin = (*load)->OriginOf(trial);
    EXPECT_EQ(origin.number, trial.number + 1);
    EXPECT_EQ(origin.id, study.trials[static_cast<std::size_t>(origin.number)]);
  }
}

TEST(RecordedLoad, TheRecordsFiguresAreNamedAsThoseOfASimulation) {
  const StudySimulation record = Record("promise_goodput", 6);
  const Study& study = record.state.studies.begin()->second;
  const auto recorded = FiguresOfRecord(record.state, study);
  const auto simulated = TimelineOf(record).figures;
  for (const auto& [name, value] : recorded) {
    const auto same =
        std::find_if(simulated.begin(), simulated.end(),
                     [&name = name](const auto& figure) { return figure.first == name; });
    ASSERT_NE(same, simulated.end()) << name;
    EXPECT_NEAR(value, same->second, 1e-6 * std::max(1.0, value)) << name;
  }
  TunerState running = record.state;
  running.studies.begin()->second.state = StudyState::kRunning;
  running.studies.begin()->second.ended = {};
  EXPECT_TRUE(std::isnan(FiguresOfRecord(running, running.studies.begin()->second)[0].second));
}

TEST(RecordedLoad, RefusesWhatIsNotThere) {
  const StudySimulation record = Record("fixed", 2);
  const auto missing = MakeRecordedLoad(record.state, "other");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(missing.status().message(), "no study \"other\" in the record; it holds poolbench");
  TunerState empty = record.state;
  for (auto& [id, trial] : empty.trials) trial.values.clear();
  EXPECT_EQ(MakeRecordedLoad(empty, "poolbench").status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(EmulatedLoad, TakesTheTimeOfItsProfile) {
  EmulatedLoadOptions options;
  const auto poolbench = MakePoolbenchLoad({});
  options.study = poolbench->Study();
  options.study.space = *SearchSpace::FromJson(
      R"({"lr": {"_type": "loguniform", "_value": [0.001, 10]},
          "batch_size": {"_type": "choice", "_value": [256]}})");
  options.study.max_trials = 1;
  options.study.policy = {"fixed", {}};
  const auto load = MakeEmulatedLoad(options);
  StudySimulationOptions pool = Slots(1);
  pool.pool.start_s = 0;
  const auto simulation = SimulateStudy(*load, load->Study(), pool);
  ASSERT_TRUE(simulation.ok()) << simulation.status();
  // 9 epochs of 24 steps of 2 ms and 256 samples at 1 ms.
  EXPECT_NEAR(simulation->figures.finish_s, 9 * 24 * (0.002 + 0.256), 1e-3);
}

}  // namespace
}  // namespace espalier
