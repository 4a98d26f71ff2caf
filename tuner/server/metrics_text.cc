// What is true at the moment of asking.

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "prometheus/text_serializer.h"
#include "tuner/server/metrics.h"

namespace espalier {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;

MetricFamily Gauge(const std::string& name, const std::string& text) {
  MetricFamily family;
  family.name = name;
  family.help = text;
  family.type = prometheus::MetricType::Gauge;
  return family;
}

void AddValue(MetricFamily& family, double value, const std::string& state = {}) {
  ClientMetric metric;
  if (!state.empty()) metric.label.push_back({"state", state});
  metric.gauge.value = value;
  family.metric.push_back(std::move(metric));
}

MetricFamily Single(const std::string& name, const std::string& text, double value) {
  MetricFamily family = Gauge(name, text);
  AddValue(family, value);
  return family;
}

template <typename State>
MetricFamily ByState(const std::string& name, const std::string& text,
                     const std::map<State, std::int64_t>& counts) {
  MetricFamily family = Gauge(name, text);
  for (const auto& [state, count] : counts) {
    AddValue(family, static_cast<double>(count), std::string(ToString(state)));
  }
  return family;
}

// One gauge of what a trial last told of how it trains.
struct TrialGauge {
  const char* name;
  const char* text;
  double (*value)(const TrainingFigures& figures);
};

constexpr TrialGauge kTrialGauges[] = {
    {"espalier_trial_step_seconds", "Mean time of an optimizer step",
     [](const TrainingFigures& f) { return f.step_time_s; }},
    {"espalier_trial_sync_share", "Share of the step time spent waiting for the all-reduce",
     [](const TrainingFigures& f) { return f.sync_share; }},
    {"espalier_trial_noise_scale", "Gradient noise scale in samples",
     [](const TrainingFigures& f) { return f.noise_scale; }},
    {"espalier_trial_batch_size", "Global batch size",
     [](const TrainingFigures& f) { return static_cast<double>(f.batch_size); }},
    {"espalier_trial_atomic_batch_size", "Samples of one forward pass on one replica",
     [](const TrainingFigures& f) { return static_cast<double>(f.atomic_batch_size); }},
    {"espalier_trial_accumulation_steps", "Forward passes of a step before its last one",
     [](const TrainingFigures& f) { return static_cast<double>(f.accumulation_steps); }},
    {"espalier_trial_learning_rate", "Learning rate",
     [](const TrainingFigures& f) { return f.learning_rate; }},
    {"espalier_trial_goodput", "Samples a second that count",
     [](const TrainingFigures& f) { return f.goodput; }},
    {"espalier_trial_throughput", "Samples a second",
     [](const TrainingFigures& f) { return f.throughput; }},
    {"espalier_trial_memory_bytes", "Resident memory of rank 0",
     [](const TrainingFigures& f) { return static_cast<double>(f.memory_bytes); }},
    {"espalier_trial_device_memory_bytes", "Memory of rank 0 on its accelerator",
     [](const TrainingFigures& f) { return static_cast<double>(f.device_memory_bytes); }},
    {"espalier_trial_skipped_steps", "Steps so far whose gradients were not finite",
     [](const TrainingFigures& f) { return static_cast<double>(f.skipped_steps); }},
    {"espalier_trial_loss_scale", "Loss scale of mixed precision",
     [](const TrainingFigures& f) { return f.loss_scale; }},
};

// Trials with series of their own at one time; more would be slow to scrape and to keep.
constexpr std::size_t kMaxTrialSeries = 500;

// Series exist only while a trial trains, so that a long study does not leave thousands behind.
void AddTrialMetrics(const View& view, std::vector<MetricFamily>& families) {
  std::vector<MetricFamily> gauges;
  for (const TrialGauge& gauge : kTrialGauges) gauges.push_back(Gauge(gauge.name, gauge.text));
  std::set<TrialId> training;
  for (const NodeView& node : view.core.Nodes()) {
    for (const ReplicaView& replica : node.replicas) training.insert(replica.trial);
  }
  std::size_t shown = 0;
  for (const TrialId id : training) {
    const TrialActivity activity = view.core.Activity(id);
    if (!activity.training || shown == kMaxTrialSeries) continue;
    ++shown;
    const Trial& trial = view.core.state().trials.at(id);
    for (std::size_t i = 0; i < gauges.size(); ++i) {
      ClientMetric metric;
      metric.label = {{"study", view.core.state().studies.at(trial.study).spec.name},
                      {"trial", std::to_string(trial.number)}};
      metric.gauge.value = kTrialGauges[i].value(activity.figures);
      gauges[i].metric.push_back(std::move(metric));
    }
  }
  if (shown == 0) return;
  families.insert(families.end(), std::make_move_iterator(gauges.begin()),
                  std::make_move_iterator(gauges.end()));
}

// Slots by what they are: their GPU type, whether they may be taken away, and how their node is.
MetricFamily NodeMetrics(const View& view) {
  using Kind = std::tuple<std::string, bool, std::string>;
  std::map<Kind, int> slots;
  for (const NodeView& node : view.core.Nodes()) {
    const std::string state = !node.connected ? "away" : node.draining ? "draining" : "ready";
    slots[{node.gpu_type, node.spot, state}] += node.slots;
  }
  MetricFamily family = Gauge("espalier_slots", "Slots by GPU type, spot and state of their node");
  for (const auto& [kind, count] : slots) {
    ClientMetric metric;
    const auto& [gpu_type, spot, state] = kind;
    metric.label = {{"gpu_type", gpu_type}, {"spot", spot ? "yes" : "no"}, {"state", state}};
    metric.gauge.value = count;
    family.metric.push_back(std::move(metric));
  }
  return family;
}

// A series for each pair, while the allocator keeps the two apart.
void AddFaultMetrics(const View& view, std::vector<MetricFamily>& families) {
  const std::map<NodeId, std::string>& names = view.core.state().nodes;
  MetricFamily family = Gauge("espalier_nodes_apart", "Pairs of nodes that cannot talk");
  for (const NodeFault& fault : view.core.Faults()) {
    ClientMetric metric;
    metric.label = {{"from", names.at(fault.from)}, {"to", names.at(fault.to)}};
    metric.gauge.value = 1;
    family.metric.push_back(std::move(metric));
  }
  if (!family.metric.empty()) families.push_back(std::move(family));
}

// Second and further places count as copies.
MetricFamily CopyMetrics(const View& view) {
  double held = 0;
  for (const auto& [id, trial] : view.core.state().trials) {
    held += static_cast<double>(std::count_if(trial.copies.begin(), trial.copies.end(),
                                              [](const auto& copy) { return copy.fetched; }));
  }
  MetricFamily family =
      Gauge("espalier_checkpoint_copies", "Copies of checkpoints that nodes keep");
  ClientMetric metric;
  metric.gauge.value = held;
  family.metric.push_back(std::move(metric));
  return family;
}

}  // namespace

std::vector<MetricFamily> StateMetrics(const View& view) {
  // Every state is listed, also with 0: a series that vanishes is hard to watch.
  std::map<StudyState, std::int64_t> studies{{StudyState::kRunning, 0},
                                             {StudyState::kStopped, 0},
                                             {StudyState::kComplete, 0},
                                             {StudyState::kFailed, 0}};
  std::map<TrialState, std::int64_t> trials{{TrialState::kWaiting, 0}, {TrialState::kRunning, 0},
                                            {TrialState::kPaused, 0},  {TrialState::kComplete, 0},
                                            {TrialState::kPruned, 0},  {TrialState::kFail, 0}};
  for (const auto& [id, study] : view.core.state().studies) ++studies[study.state];
  for (const auto& [id, trial] : view.core.state().trials) ++trials[trial.state];
  std::vector<MetricFamily> families = {
      CopyMetrics(view), ByState("espalier_studies", "Studies by state", studies),
      ByState("espalier_trials", "Trials by state", trials),
      Single("espalier_slots_total", "Slots of the pool", view.core.SlotsTotal()),
      Single("espalier_slots_held", "Slots held by trials", view.core.SlotsHeld())};
  families.push_back(NodeMetrics(view));
  AddFaultMetrics(view, families);
  AddTrialMetrics(view, families);
  return families;
}

double ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  double total = 0;
  double resident = 0;
  statm >> total >> resident;
  return statm ? resident * static_cast<double>(sysconf(_SC_PAGESIZE)) : 0;
}

absl::StatusOr<std::string> Metrics::Text(Tuner& tuner, std::size_t queued) const {
  std::vector<MetricFamily> families;
  ESPALIER_RETURN_IF_ERROR(
      tuner.Read([&families](const View& view) { families = StateMetrics(view); }));
  families.push_back(Single("espalier_queue_length", "Events that wait for the owner thread",
                            static_cast<double>(queued)));
  families.push_back(Single("process_resident_memory_bytes", "Resident memory", ResidentBytes()));
  std::vector<MetricFamily> counted = registry_.Collect();
  families.insert(families.end(), std::make_move_iterator(counted.begin()),
                  std::make_move_iterator(counted.end()));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace espalier
