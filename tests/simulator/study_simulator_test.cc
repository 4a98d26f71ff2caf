#include "tuner/simulator/study_simulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tuner/simulator/emulated_load.h"
#include "tuner/simulator/poolbench_load.h"

namespace espalier {
namespace {

StudySimulationOptions OnePool(int nodes, int slots) {
  StudySimulationOptions options;
  for (int i = 0; i < nodes; ++i)
    options.pool.nodes.push_back({"node-" + std::to_string(i), slots});
  return options;
}

StudySimulation Simulate(std::uint64_t seed, const std::string& policy, std::int64_t trials,
                         const StudySimulationOptions& options) {
  const auto load = MakePoolbenchLoad({.seed = seed});
  StudySpec spec = load->Study();
  spec.max_trials = trials;
  spec.policy = {policy, {}};
  auto simulation = SimulateStudy(*load, spec, options);
  EXPECT_TRUE(simulation.ok()) << simulation.status();
  return *std::move(simulation);
}

TEST(StudySimulator, OneTrialOnOneSlotTakesItsEpochs) {
  StudySimulationOptions options = OnePool(1, 1);
  options.pool.start_s = 2;
  const StudySimulation s = Simulate(0, "fixed", 1, options);
  Random random(0);
  const PoolbenchConfiguration c = SamplePoolbench(random);
  EXPECT_EQ(s.figures.complete, 1);
  EXPECT_NEAR(s.figures.finish_s, 2 + 81 * PoolbenchEpochSeconds(c, 1), 1e-3);
  EXPECT_NEAR(*s.figures.best, Poolbench().Errors(c).back(), 1e-12);
  const Trial& trial = s.state.trials.begin()->second;
  ASSERT_EQ(trial.values.size(), 81u);
  EXPECT_EQ(std::get<double>(trial.parameters.front().value), c.log10_lr);
  EXPECT_NEAR(s.figures.slot_use, 1, 1e-3);
}

TEST(StudySimulator, AllTrialsEndAndSlotsNeverExceedThePool) {
  for (const char* policy : {"fixed", "promise_goodput"}) {
    const StudySimulation s = Simulate(3, policy, 24, OnePool(2, 4));
    EXPECT_TRUE(s.figures.ended);
    EXPECT_EQ(s.figures.trials, 24);
    EXPECT_EQ(s.figures.complete + s.figures.pruned, 24);
    EXPECT_LE(s.figures.slot_use, 1 + 1e-9);
    EXPECT_GT(s.figures.slot_use, 0.1);
  }
}

// The processes of an ended trial leave one after the other: what the first of them leaves is for
// the next trial, which needs them all.
TEST(StudySimulator, NobodyGrowsIntoWhatTheNextTrialIsAboutToNeed) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    EmulatedLoadOptions emulated;
    emulated.study.name = "e";
    emulated.study.space = *SearchSpace::FromJson(
        R"({"lr": {"_type": "loguniform", "_value": [0.001, 10]},
            "batch_size": {"_type": "choice", "_value": [64, 128, 256, 512]}})");
    emulated.study.command = {"emulated"};
    emulated.study.sampler = {"random", {}};
    emulated.study.pruner = {"asha", {{"min_steps", 1}, {"eta", 3}}};
    emulated.study.policy = {"promise_goodput", {}};
    emulated.study.max_trials = 24;
    emulated.study.max_step = 9;
    emulated.study.min_slots = 3;
    emulated.study.max_slots = 5;
    emulated.study.seed = seed;
    const StudySpec spec = emulated.study;
    const auto load = MakeEmulatedLoad(std::move(emulated));
    const auto simulation = SimulateStudy(*load, spec, OnePool(1, 16));
    ASSERT_TRUE(simulation.ok()) << simulation.status();
    std::map<std::int64_t, Time> grew;
    for (const Decision& d : simulation->state.studies.begin()->second.decisions) {
      if (d.kind == DecisionKind::kGrow) grew[d.trial_number] = d.at;
      if (d.kind != DecisionKind::kShrink || !grew.contains(d.trial_number)) continue;
      EXPECT_GT(SecondsBetween(grew[d.trial_number], d.at), 2.5)
          << "seed " << seed << ", trial " << d.trial_number << " " << d.reason;
    }
  }
}

TEST(StudySimulator, GrowingTrialsFinishSooner) {
  const StudySimulation fixed = Simulate(1, "fixed", 8, OnePool(1, 8));
  const StudySimulation elastic = Simulate(1, "promise_goodput", 8, OnePool(1, 8));
  EXPECT_EQ(fixed.figures.resizes, 0);
  EXPECT_GT(elastic.figures.resizes, 0);
  EXPECT_LT(elastic.figures.finish_s, fixed.figures.finish_s);
}

TEST(StudySimulator, ResizesCostTheirPause) {
  StudySimulationOptions cheap = OnePool(1, 8);
  cheap.pool.resize_s = 0;
  StudySimulationOptions dear = OnePool(1, 8);
  dear.pool.resize_s = 30;
  const StudySimulation a = Simulate(1, "promise_goodput", 8, cheap);
  const StudySimulation b = Simulate(1, "promise_goodput", 8, dear);
  EXPECT_LT(a.figures.finish_s, b.figures.finish_s);
  for (const auto& [id, trial] : b.state.trials) {
    for (const Resize& resize : trial.resizes) EXPECT_NEAR(resize.pause_s, 30, 1e-9);
  }
}

TEST(StudySimulator, SameSeedSameRecord) {
  const StudySimulation a = Simulate(7, "promise_goodput", 20, OnePool(1, 6));
  const StudySimulation b = Simulate(7, "promise_goodput", 20, OnePool(1, 6));
  EXPECT_EQ(a.state.trials, b.state.trials);
  EXPECT_EQ(a.state.studies.begin()->second.decisions, b.state.studies.begin()->second.decisions);
  const StudySimulation c = Simulate(8, "promise_goodput", 20, OnePool(1, 6));
  EXPECT_NE(a.state.trials, c.state.trials);
}

TEST(StudySimulator, StartsOfABurstShareTheCores) {
  StudySimulationOptions options = OnePool(1, 8);
  options.pool.start_s = 0;
  options.pool.start_load = {.cpu_s = 3, .cores = 2};
  const StudySimulation s = Simulate(0, "fixed", 8, options);
  options.pool.start_load.cores = 8;
  const StudySimulation quick = Simulate(0, "fixed", 8, options);
  for (const auto& [id, trial] : s.state.trials) {  // 8 starts on 2 cores take four times as long
    EXPECT_NEAR(
        SecondsBetween(quick.state.trials.at(id).values.front().at, trial.values.front().at),
        3 * 8 / 2.0 - 3, 1e-3);
  }
}

// Seconds from the plan of each resize to a larger group until it was formed.
std::vector<double> JoinTimes(const StudySimulation& s) {
  std::vector<double> times;
  for (const auto& [id, trial] : s.state.trials) {
    for (const Resize& resize : trial.resizes) {
      if (resize.to_replicas <= resize.from_replicas || resize.from_replicas == 0) continue;
      double planned_s = 0;
      for (const SlotSpan& span : trial.spans) {
        if (span.from < resize.at) planned_s = SecondsBetween(VirtualPool::kStart, span.from);
      }
      times.push_back(SecondsBetween(VirtualPool::kStart, resize.at) - planned_s);
    }
  }
  return times;
}

TEST(StudySimulator, SparesComeBackAtOnce) {
  StudySimulationOptions options = OnePool(1, 8);
  options.pool.start_s = 5;
  options.pool.resize_s = 0;
  const StudySimulation without = Simulate(2, "hypersched", 24, options);
  options.pool.spare_start_s = 0.25;
  const StudySimulation with = Simulate(2, "hypersched", 24, options);
  const auto quick = [](const StudySimulation& s) {
    const std::vector<double> times = JoinTimes(s);
    return std::count_if(times.begin(), times.end(), [](double t) { return t < 1; });
  };
  EXPECT_EQ(quick(without), 0);
  EXPECT_GT(quick(with), 0);
}

TEST(StudySimulator, GroupsChangeAtTheEndOfAStep) {
  StudySimulationOptions options = OnePool(1, 8);
  options.pool.whole_steps = true;
  options.pool.resize_s = 0;
  options.pool.start_s = 0.123;
  std::int64_t changes = 0;
  options.pool.observer = [&changes](Time, const Event& event, const StepResult&) {
    const auto* said = std::get_if<FromReplica>(&event);
    changes += said != nullptr && std::holds_alternative<ReplicaRegrouped>(said->message);
  };
  const StudySimulation s = Simulate(1, "promise_goodput", 8, options);
  EXPECT_GT(changes, 8);
  EXPECT_EQ(s.figures.complete + s.figures.pruned, 8);
  options.pool.whole_steps = false;
  const StudySimulation at_once = Simulate(1, "promise_goodput", 8, options);
  EXPECT_NE(s.figures.finish_s, at_once.figures.finish_s);
  EXPECT_NEAR(s.figures.finish_s, at_once.figures.finish_s, 0.2 * at_once.figures.finish_s);
}

TEST(StudySimulator, RefusesAnImpossibleStart) {
  const auto load = MakePoolbenchLoad({.seed = 0});
  StudySimulationOptions options = OnePool(1, 8);
  options.pool.start_load.spread = 1;
  const auto simulation = SimulateStudy(*load, load->Study(), options);
  EXPECT_EQ(simulation.status().message(), "start_spread is 1: want at least 0 and less than 1");
}

// What the observer saw, given to a core of its own, is the same record: nothing was decided
// outside the core.
TEST(StudySimulator, DecidesWhatTheCoreDecides) {
  std::vector<std::pair<Time, Event>> transcript;
  StudySimulationOptions options = OnePool(2, 4);
  options.pool.observer = [&transcript](Time at, const Event& event, const StepResult&) {
    transcript.emplace_back(at, event);
  };
  const StudySimulation s = Simulate(5, "promise_goodput", 16, options);
  Core core(TunerState{}, CoreOptions{});
  TunerState applied;
  for (const auto& [at, event] : transcript) {
    for (const Change& change : core.Step(at, event).changes) applied.Apply(change);
  }
  EXPECT_EQ(applied.studies.begin()->second.decisions, s.state.studies.begin()->second.decisions);
  for (const auto& [id, trial] : s.state.trials) {
    EXPECT_EQ(applied.trials.at(id).values, trial.values);
    EXPECT_EQ(applied.trials.at(id).spans, trial.spans);
  }
}

TEST(StudySimulator, ALostNodeCostsTrialsNoMoreThanTheirLastStep) {
  StudySimulationOptions options = OnePool(2, 4);
  options.pool.nodes[1].leaves_s = 100;
  const StudySimulation s = Simulate(2, "promise_goodput", 12, options);
  EXPECT_TRUE(s.figures.ended);
  EXPECT_EQ(s.figures.failed, 0);
  EXPECT_EQ(s.figures.complete + s.figures.pruned, 12);
  for (const auto& [id, trial] : s.state.trials) {
    for (std::size_t i = 0; i < trial.values.size(); ++i) {
      EXPECT_EQ(trial.values[i].step, static_cast<std::int64_t>(i) + 1);
    }
  }
}

TEST(StudySimulator, MeasuresWhatPromiseIsWorth) {
  const StudySimulation s = Simulate(6, "promise_goodput", 24, OnePool(1, 8));
  EXPECT_GT(s.promise.count, 24);
  int counted = 0;
  for (const ReliabilityBin& bin : s.promise.bins) counted += bin.count;
  EXPECT_EQ(counted, s.promise.count);
  // Better than to tell everybody the same.
  EXPECT_LT(s.promise.brier, 0.25);
  EXPECT_LT(s.promise.expected_calibration_error, 0.5);
}

TEST(StudySimulator, RefusesWhatItCannotSimulate) {
  const auto load = MakePoolbenchLoad({});
  StudySpec spec = load->Study();
  EXPECT_EQ(SimulateStudy(*load, spec, {}).status().code(), absl::StatusCode::kInvalidArgument);
  StudySimulationOptions negative = OnePool(1, 1);
  negative.pool.resize_s = -1;
  EXPECT_EQ(SimulateStudy(*load, spec, negative).status().message(),
            "resize_s is -1: want a number from 0 to 1e+09");
  StudySpec bounded = spec;
  bounded.constraints = {{"latency", false, 1}};
  EXPECT_NE(SimulateStudy(*load, bounded, OnePool(1, 1)).status().message().find("constraints"),
            absl::string_view::npos);
  StudySpec population = spec;
  population.population.interval = 2;
  EXPECT_NE(SimulateStudy(*load, population, OnePool(1, 1)).status().message().find("population"),
            absl::string_view::npos);
  spec.batch_mode = BatchMode::kAdaptive;
  EXPECT_FALSE(SimulateStudy(*load, spec, OnePool(1, 1)).ok());
}

TEST(StudySimulator, TimelineNamesTrialsReasonsAndFigures) {
  const StudySimulation s = Simulate(3, "promise_goodput", 6, OnePool(1, 4));
  const Timeline timeline = TimelineOf(s);
  ASSERT_EQ(timeline.rows.size(), 6u);
  EXPECT_EQ(timeline.rows[2].name, "trial 2");
  EXPECT_FALSE(timeline.rows[0].spans.empty());
  ASSERT_FALSE(timeline.decisions.empty());
  EXPECT_FALSE(timeline.decisions.front().reason.empty());
  EXPECT_EQ(timeline.figures.front().first, "finish_s");
  EXPECT_EQ(timeline.figures.front().second, s.figures.finish_s);
}

}  // namespace
}  // namespace espalier
