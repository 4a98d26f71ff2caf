// Studies of several objectives on virtual time, for the benchmark objectives:
//   bench_objective_trials FOLDER problems
//   bench_objective_trials FOLDER evaluate PROBLEM
//   bench_objective_trials FOLDER run PROBLEM SAMPLER PRUNER SEED SLOT_SECONDS
//   [PART.OPTION=VALUE...]
// FOLDER has the recordings. `problems` prints a line of JSON for each. `evaluate` reads lines and
// answers each: "trial PARAMETERS" by the seconds that it holds its slot and what it comes to, and
// "ended NUMBER" by the hypervolume of those that have ended. `run` has a study of one-slot trials
// on the core that ships until the pool's slots are used up, and prints the hypervolume of its
// complete trials with the slot-seconds that all trials had held by then. A PART is sampler or
// pruner.

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "base/random.h"
#include "tests/benchmarks/programs/objective_problems.h"
#include "tuner/simulator/study_simulator.h"

namespace espalier::benchmarks {
namespace {

constexpr int kSlots = 4;

std::string NameOf(std::size_t objective) { return absl::StrCat("objective_", objective + 1); }

class ObjectiveTruth final : public TrialTruth {
 public:
  explicit ObjectiveTruth(ObjectiveTrial trial) : trial_(std::move(trial)) {}
  BatchBounds bounds() const override { return {64, 64, 1, 64, true}; }
  std::int64_t steps() const override { return std::ssize(trial_.curves.front()); }
  Pace On(int, int) const override { return {1, trial_.step_s, trial_.step_s}; }
  double ValueAfter(std::int64_t nth) const override { return At(0, nth); }
  std::map<std::string, double> FiguresAfter(std::int64_t nth) const override {
    std::map<std::string, double> figures;
    for (std::size_t k = 1; k < trial_.curves.size(); ++k) figures[NameOf(k)] = At(k, nth);
    return figures;
  }

 private:
  double At(std::size_t objective, std::int64_t nth) const {
    return trial_.curves[objective][static_cast<std::size_t>(nth - 1)];
  }
  const ObjectiveTrial trial_;
};

class ObjectiveLoad final : public Workload {
 public:
  ObjectiveLoad(const ObjectiveProblem& problem, std::uint64_t seed)
      : problem_(problem), seed_(seed) {}
  StudySpec Study() const override {
    StudySpec spec;
    spec.name = problem_.name;
    spec.metric = NameOf(0);
    spec.directions.assign(problem_.objectives(), Direction::kMinimize);
    for (std::size_t k = 1; k < problem_.objectives(); ++k) spec.other_metrics.push_back(NameOf(k));
    spec.space = *SearchSpace::FromJson(problem_.space_json);
    spec.command = {"program"};
    spec.directory = "/";
    spec.max_slots = 1;
    spec.max_step = problem_.steps;
    spec.seed = seed_;
    return spec;
  }
  bool TellsFigures() const override { return true; }
  std::unique_ptr<TrialTruth> Begin(const Trial& trial) override {
    const std::uint64_t seed = MixSeed(seed_, static_cast<std::uint64_t>(trial.number));
    return std::make_unique<ObjectiveTruth>(problem_.run(trial.parameters, seed));
  }

 private:
  const ObjectiveProblem& problem_;
  const std::uint64_t seed_;
};

int Fail(absl::string_view what) {
  std::fprintf(stderr, "%s\n", std::string(what).c_str());
  return 2;
}

int PrintProblems(const std::vector<ObjectiveProblem>& problems) {
  for (const ObjectiveProblem& problem : problems) {
    std::string space = problem.space_json;
    std::replace(space.begin(), space.end(), '\n', ' ');
    std::printf("{\"name\": \"%s\", \"objectives\": %zu, \"front_volume\": %.17g, \"space\": %s}\n",
                problem.name.c_str(), problem.objectives(), VolumeOf(problem, problem.front),
                space.c_str());
  }
  return 0;
}

int Evaluate(const ObjectiveProblem& problem) {
  const SearchSpace space = *SearchSpace::FromJson(problem.space_json);
  std::vector<std::vector<double>> ends;
  std::vector<std::vector<double>> ended;
  for (std::string line; std::getline(std::cin, line);) {
    absl::string_view rest = line;
    std::size_t number = 0;
    if (absl::ConsumePrefix(&rest, "ended ") && absl::SimpleAtoi(rest, &number) &&
        number < ends.size()) {
      ended.push_back(ends[number]);
      absl::PrintF("%.17g\n", VolumeOf(problem, ended));
    } else if (absl::ConsumePrefix(&rest, "trial ")) {
      const absl::StatusOr<Parameters> parameters = ParametersFromJson(std::string(rest));
      const absl::Status fits = parameters.ok() ? space.Validate(*parameters) : parameters.status();
      if (!fits.ok()) return Fail(fits.message());
      const ObjectiveTrial trial = problem.run(*parameters, 0);
      ends.push_back(trial.End());
      absl::PrintF("%.17g %s\n", problem.start_s + problem.steps * trial.step_s,
                   absl::StrJoin(ends.back(), " ", [](std::string* out, double value) {
                     absl::StrAppendFormat(out, "%.17g", value);
                   }));
    } else {
      return Fail(absl::StrCat("\"", line, "\": want trial PARAMETERS or ended NUMBER"));
    }
    std::fflush(stdout);
  }
  return 0;
}

// What trials had held of slots by a moment.
double SlotSecondsUntil(const TunerState& state, Time moment) {
  double sum = 0;
  for (const auto& [id, trial] : state.trials) {
    for (const SlotSpan& span : trial.spans) {
      const Time to = span.to == Time{} ? moment : std::min(span.to, moment);
      if (span.from < to)
        sum += SecondsBetween(span.from, to) * static_cast<double>(span.slots.size());
    }
  }
  return sum;
}

struct Run {
  std::string sampler;
  std::string pruner;
  std::uint64_t seed = 0;
  double slot_seconds = 0;
  Options sampler_options{};
  Options pruner_options{};
};

int RunStudy(const ObjectiveProblem& problem, const Run& run) {
  ObjectiveLoad load(problem, run.seed);
  StudySpec spec = load.Study();
  spec.sampler = {run.sampler, run.sampler_options};
  spec.pruner = {run.pruner, run.pruner_options};
  StudySimulationOptions options;
  options.pool.nodes.push_back({"node", kSlots});
  options.pool.start_s = problem.start_s;
  options.pool.resize_s = 0;
  options.until_s = run.slot_seconds / kSlots;
  const auto begun = std::clock();
  const auto simulation = SimulateStudy(load, spec, options);
  if (!simulation.ok()) return Fail(simulation.status().message());
  std::vector<std::pair<Time, std::vector<double>>> ends;
  for (const auto& [id, trial] : simulation->state.trials) {
    if (trial.state != TrialState::kComplete) continue;
    const std::uint64_t seed = MixSeed(run.seed, static_cast<std::uint64_t>(trial.number));
    ends.emplace_back(trial.ended, problem.run(trial.parameters, seed).End());
  }
  std::sort(ends.begin(), ends.end());
  std::vector<std::vector<double>> rows;
  std::vector<std::string> points;
  double volume = 0;
  for (const auto& [at, end] : ends) {
    rows.push_back(end);
    const double now = VolumeOf(problem, rows);
    if (now <= volume) continue;
    volume = now;
    points.push_back(
        absl::StrFormat("[%.9g, %.12g]", SlotSecondsUntil(simulation->state, at), volume));
  }
  const StudyFigures& figures = simulation->figures;
  absl::PrintF(
      "{\"volumes\": [%s], \"trials\": %d, \"complete\": %d, \"pruned\": %d, \"failed\": %d, "
      "\"slot_seconds\": %.9g, \"promise_error\": %.4f, \"cpu_s\": %.2f}\n",
      absl::StrJoin(points, ", "), figures.trials, figures.complete, figures.pruned, figures.failed,
      figures.slot_seconds, simulation->promise.expected_calibration_error,
      static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC);
  return 0;
}

// Adds "PART.OPTION=VALUE" to what it is of.
bool TakeOption(absl::string_view text, Run& run) {
  const std::vector<std::string> halves = absl::StrSplit(text, absl::MaxSplits('=', 1));
  const std::vector<std::string> name = absl::StrSplit(halves[0], absl::MaxSplits('.', 1));
  if (halves.size() != 2 || name.size() != 2) return false;
  if (name[0] != "sampler" && name[0] != "pruner") return false;
  Options& options = name[0] == "sampler" ? run.sampler_options : run.pruner_options;
  options[name[1]] = OptionValue::OfText(halves[1]);
  return true;
}

int Main(const std::vector<std::string>& words) {
  if (words.size() < 2) return Fail("want FOLDER and what to do");
  const auto problems = ObjectiveProblems(words[0]);
  if (!problems.ok()) return Fail(problems.status().message());
  if (words[1] == "problems") return PrintProblems(*problems);
  if (words.size() < 3) return Fail("want the name of a problem");
  const auto problem =
      std::ranges::find_if(*problems, [&](const auto& one) { return one.name == words[2]; });
  if (problem == problems->end()) return Fail(absl::StrCat("no problem \"", words[2], "\""));
  if (words[1] == "evaluate") return Evaluate(*problem);
  if (words[1] != "run" || words.size() < 7) return Fail("want problems, evaluate or run");
  Run run{.sampler = words[3], .pruner = words[4]};
  if (!absl::SimpleAtoi(words[5], &run.seed) || !absl::SimpleAtod(words[6], &run.slot_seconds))
    return Fail("want the seed and the slot-seconds, numbers");
  for (std::size_t i = 7; i < words.size(); ++i) {
    if (!TakeOption(words[i], run)) return Fail(absl::StrCat("\"", words[i], "\": no option"));
  }
  return RunStudy(*problem, run);
}

}  // namespace
}  // namespace espalier::benchmarks

int main(int argc, char** argv) {
  return espalier::benchmarks::Main(std::vector<std::string>(argv + 1, argv + argc));
}
