#include "tuner/simulator/study_simulator.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tuner/core/fronts/fronts.h"
#include "tuner/core/state/study_facts.h"

namespace espalier {

namespace {

absl::Status CheckPool(const VirtualPoolOptions& pool) {
  if (pool.nodes.empty() && !pool.core.pool_size) {
    return absl::InvalidArgumentError("the pool has no node: want 1 or more");
  }
  if (pool.core.pool_size) ESPALIER_RETURN_IF_ERROR(CheckPoolSize(*pool.core.pool_size));
  std::set<std::string> names;
  for (const VirtualNode& node : pool.nodes) {
    if (node.slots < 1 || node.name.empty() || !names.insert(node.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("node \"", node.name, "\" with ", node.slots,
                       " slots: want a name of its own and at least 1 slot"));
    }
  }
  const StartLoad& load = pool.start_load;
  for (const auto& [name, value] :
       {std::pair("resize_s", pool.resize_s), std::pair("start_s", pool.start_s),
        std::pair("start_cpu_s", load.cpu_s), std::pair("cores", load.cores),
        std::pair("spare_start_s", pool.spare_start_s.value_or(0))}) {
    if (!(value >= 0 && value <= kMostSimulated_s)) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " is ", value, ": want a number from 0 to ", kMostSimulated_s));
    }
  }
  if (!(load.spread >= 0 && load.spread < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("start_spread is ", load.spread, ": want at least 0 and less than 1"));
  }
  if (!(pool.progress_period_s > 0)) {
    return absl::InvalidArgumentError(absl::StrCat("progress_period_s is ", pool.progress_period_s,
                                                   ": want seconds, more than 0"));
  }
  return absl::OkStatus();
}

double EndOf(const SlotSpan& span, Time end) {
  return SecondsBetween(VirtualPool::kStart, span.to == Time{} ? end : std::min(span.to, end));
}

double SlotSecondsOf(const Trial& trial, Time end) {
  double sum = 0;
  for (const SlotSpan& span : trial.spans) {
    const double from = SecondsBetween(VirtualPool::kStart, span.from);
    sum += std::max(0.0, EndOf(span, end) - from) * static_cast<double>(span.slots.size());
  }
  return sum;
}

int ResizesOf(const Trial& trial) {
  return static_cast<int>(std::count_if(
      trial.resizes.begin(), trial.resizes.end(),
      [](const Resize& resize) { return resize.from_replicas != resize.to_replicas; }));
}

void CountTrial(const Trial& trial, Direction direction, std::optional<double> target, Time end,
                StudyFigures& figures) {
  ++figures.trials;
  figures.complete += trial.state == TrialState::kComplete;
  figures.pruned += trial.state == TrialState::kPruned;
  figures.failed += trial.state == TrialState::kFail;
  figures.unfinished += !Ended(trial.state);
  figures.resizes += ResizesOf(trial);
  figures.slot_seconds += SlotSecondsOf(trial, end);
  if (!target) return;
  for (const IntermediateValue& value : trial.values) {
    if (!Counts(direction, value.value) || Better(direction, *target, value.value)) continue;
    const double at_s = SecondsBetween(VirtualPool::kStart, value.at);
    figures.target_s = std::min(figures.target_s.value_or(at_s), at_s);
    return;
  }
}

StudyFigures FiguresOf(const TunerState& state, const Study& study,
                       const StudySimulationOptions& options, const VirtualPool& pool, Time end) {
  StudyFigures figures;
  figures.ended = study.state != StudyState::kRunning;
  figures.finish_s = SecondsBetween(VirtualPool::kStart, end);
  const std::optional<double> target = options.target ? options.target : study.spec.target;
  for (const TrialId id : study.trials) {
    const Trial& trial = state.trials.at(id);
    const bool counts = !Breaks(study.spec, trial);
    CountTrial(trial, study.spec.direction(), counts ? target : std::nullopt, end, figures);
  }
  if (const auto best = BestTrial(state, study)) {
    const Trial& trial = state.trials.at(study.trials[static_cast<std::size_t>(*best)]);
    figures.best_trial = *best;
    figures.best = BestValue(trial, study.spec.direction());
    figures.slot_seconds_on_best = SlotSecondsOf(trial, end);
  }
  for (const Decision& decision : study.decisions) {
    figures.pauses += decision.kind == DecisionKind::kPause;
  }
  const VirtualPool::NodeUse use = pool.UseOfNodes(end);
  figures.slot_use = use.slot_seconds > 0 ? figures.slot_seconds / use.slot_seconds : 0;
  figures.node_seconds = use.node_seconds;
  figures.node_price = use.price;
  figures.most_nodes = use.most_nodes;
  return figures;
}

// Nobody asks for trials on virtual time, and a study that waits for slots for ever says nothing.
absl::Status CheckCanRun(const Workload& load, const StudySpec& spec,
                         const VirtualPoolOptions& pool) {
  if (spec.by_clients()) {
    return absl::InvalidArgumentError(
        absl::StrCat("study \"", spec.name, "\" has its trials from clients, and a simulation has ",
                     "none: want a sampler, e.g. random"));
  }
  if (!spec.other_metrics.empty() && !load.TellsFigures()) {
    return absl::InvalidArgumentError(
        absl::StrCat("study \"", spec.name, "\" has ", spec.directions.size(),
                     " metrics, and trials of this load tell of one: want one \"metric\""));
  }
  if (!spec.constraints.empty() && !load.TellsFigures()) {
    return absl::InvalidArgumentError(
        absl::StrCat("study \"", spec.name, "\" has \"constraints\" on figures that its trials ",
                     "report, and trials of this load tell their metric alone: want none"));
  }
  if (spec.population.on()) {
    return absl::InvalidArgumentError(
        absl::StrCat("study \"", spec.name, "\" is a \"population\", whose members go on from one ",
                     "another's checkpoints, and simulated trials have none: leave it out"));
  }
  if (spec.sampler.name == kQueueSampler) {
    return absl::InvalidArgumentError(
        absl::StrCat("study \"", spec.name, "\" has its trials from a queue, and a simulation has ",
                     "none: want another sampler, e.g. random"));
  }
  int slots = 0;
  const auto of_one = [&spec](int on_node) {
    return spec.slots_per_node > 0 ? std::min(on_node, spec.slots_per_node) : on_node;
  };
  for (const VirtualNode& node : pool.nodes) slots += of_one(node.slots);
  if (pool.core.pool_size) {
    for (const NodeTemplate& of : pool.core.pool_size->templates)
      slots += of_one(of.slots) * of.max_nodes;
  }
  if (slots < spec.min_slots) {
    return absl::InvalidArgumentError(absl::StrCat("a trial of study \"", spec.name, "\" needs ",
                                                   spec.min_slots, " slots, and the pool has ",
                                                   slots, " at most"));
  }
  return absl::OkStatus();
}

// What a trial comes to at its end in each objective, less being better; nullopt: it has no number
// for one of them, or breaks a constraint.
std::optional<std::vector<double>> LossesAtItsEnd(const TrialTruth& truth, const StudySpec& spec) {
  const double value = truth.ValueAfter(truth.steps());
  const std::map<std::string, double> figures = truth.FiguresAfter(truth.steps());
  const auto told = [&](const std::string& name) {
    const auto figure = figures.find(name);
    if (name == spec.metric) return value;
    return figure == figures.end() ? std::nan("") : figure->second;
  };
  std::vector<double> losses;
  for (std::size_t k = 0; k < spec.directions.size(); ++k) {
    const double own = k == 0 ? value : told(spec.other_metrics[k - 1]);
    if (!Counts(spec.directions[k], own)) return std::nullopt;
    losses.push_back(spec.directions[k] == Direction::kMinimize ? own : -own);
  }
  for (const Constraint& constraint : spec.constraints) {
    if (!(constraint.Violation(told(constraint.figure)) <= 0)) return std::nullopt;
  }
  return losses;
}

// Numbers of the trials that would end among the best k, or of several objectives on the Pareto
// front, had they all run to their end.
std::set<TrialId> TrulyBest(Workload& load, const TunerState& state, const Study& study) {
  std::vector<std::pair<double, TrialId>> costs;
  Losses losses(std::max<std::size_t>(1, study.spec.directions.size()));
  std::vector<TrialId> rows;
  for (const TrialId id : study.trials) {
    const auto end = LossesAtItsEnd(*load.Begin(state.trials.at(id)), study.spec);
    if (!end) continue;
    costs.emplace_back(end->front(), id);
    losses.Add(*end);
    rows.push_back(id);
  }
  std::set<TrialId> best;
  if (study.spec.directions.size() > 1) {
    for (const std::size_t row : ParetoFront(losses)) best.insert(rows[row]);
    return best;
  }
  std::sort(costs.begin(), costs.end());
  const auto k = static_cast<std::size_t>(std::max(1, study.spec.best_k));
  for (std::size_t i = 0; i < std::min(k, costs.size()); ++i) best.insert(costs[i].second);
  return best;
}

Reliability PromiseReliability(const std::vector<std::pair<TrialId, double>>& promises,
                               const std::set<TrialId>& best) {
  std::vector<Prediction> predictions;
  for (const auto& [trial, promise] : promises) {
    predictions.push_back({promise, best.contains(trial)});
  }
  return MeasureReliability(predictions);
}

std::string OutcomeOf(const Trial& trial) {
  switch (trial.state) {
    case TrialState::kComplete:
      return "complete";
    case TrialState::kPruned:
      return "pruned";
    case TrialState::kFail:
      return "failed";
    case TrialState::kWaiting:
      return "waiting";
    case TrialState::kRunning:
      return "running";
    case TrialState::kPaused:
      return "paused";
  }
  return "";
}

TimelineRow RowOf(const Trial& trial, Time end) {
  TimelineRow row;
  row.name = absl::StrCat("trial ", trial.number);
  row.submitted_s = SecondsBetween(VirtualPool::kStart, trial.created);
  if (Ended(trial.state)) row.ended_s = SecondsBetween(VirtualPool::kStart, trial.ended);
  row.outcome = OutcomeOf(trial);
  row.resizes = ResizesOf(trial);
  for (const SlotSpan& span : trial.spans) {
    std::set<NodeId> nodes;
    for (const Slot& slot : span.slots) nodes.insert(slot.node);
    row.spans.push_back({SecondsBetween(VirtualPool::kStart, span.from), EndOf(span, end),
                         static_cast<int>(span.slots.size()), static_cast<int>(nodes.size())});
  }
  return row;
}

}  // namespace

absl::StatusOr<StudySimulation> SimulateStudy(Workload& load, const StudySpec& spec,
                                              const StudySimulationOptions& options) {
  ESPALIER_RETURN_IF_ERROR(CheckPool(options.pool));
  if (spec.batch_mode != BatchMode::kFixed) {
    return absl::InvalidArgumentError(
        "batch mode \"adaptive\" cannot be simulated: a load gives curves at a fixed global batch");
  }
  ESPALIER_RETURN_IF_ERROR(CheckCanRun(load, spec, options.pool));
  if (!(options.until_s > 0 && options.until_s <= kMostSimulated_s)) {
    return absl::InvalidArgumentError(absl::StrCat("until_s is ", options.until_s,
                                                   ": want seconds, more than 0 and at most ",
                                                   kMostSimulated_s));
  }
  VirtualPool pool(load, options.pool);
  const Reply reply = pool.Client(CreateStudy{spec, false});
  ESPALIER_RETURN_IF_ERROR(reply.status);
  pool.Run(options.until_s);

  StudySimulation simulation;
  simulation.state = pool.state();
  for (auto& [id, trial] : simulation.state.trials) trial.parameters = load.ParametersOf(trial);
  const Study& study = simulation.state.studies.at(reply.study());
  simulation.end = study.ended == Time{} ? After(VirtualPool::kStart, pool.now_s()) : study.ended;
  simulation.figures = FiguresOf(simulation.state, study, options, pool, simulation.end);
  simulation.figures.core_steps = pool.steps();
  simulation.promise =
      PromiseReliability(pool.promises(), TrulyBest(load, simulation.state, study));
  return simulation;
}

Timeline TimelineOf(const StudySimulation& simulation) {
  Timeline timeline;
  const Study& study = simulation.state.studies.begin()->second;
  for (const TrialId id : study.trials) {
    timeline.rows.push_back(RowOf(simulation.state.trials.at(id), simulation.end));
  }
  for (const Decision& decision : study.decisions) {
    timeline.decisions.push_back(
        {.at_s = SecondsBetween(VirtualPool::kStart, decision.at),
         .row = decision.trial_number < 0 ? "" : absl::StrCat("trial ", decision.trial_number),
         .from_slots = decision.from_slots,
         .to_slots = decision.to_slots,
         .reason = decision.reason,
         .kind = std::string(ToString(decision.kind))});
  }
  const StudyFigures& f = simulation.figures;
  timeline.figures = {{"finish_s", f.ended ? f.finish_s : std::nan("")},
                      {"best", f.best.value_or(std::nan(""))},
                      {"target_s", f.target_s.value_or(std::nan(""))},
                      {"slot_seconds", f.slot_seconds},
                      {"slot_use", f.slot_use},
                      {"slot_seconds_on_best", f.slot_seconds_on_best},
                      {"node_hours", f.node_seconds / 3600},
                      {"node_price", f.node_price},
                      {"most_nodes", f.most_nodes},
                      {"resizes", f.resizes},
                      {"pauses", f.pauses},
                      {"trials", f.trials},
                      {"complete", f.complete},
                      {"pruned", f.pruned},
                      {"failed", f.failed},
                      {"unfinished", f.unfinished},
                      {"promise_error", simulation.promise.expected_calibration_error}};
  return timeline;
}

}  // namespace espalier
