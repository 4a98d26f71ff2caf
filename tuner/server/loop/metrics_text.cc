// What is true at the moment of asking.

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "prometheus/text_serializer.h"
#include "tuner/core/state/engine_node_names.h"
#include "tuner/messages/training_figures.h"
#include "tuner/server/loop/metrics.h"
#include "tuner/study_file/study_file.h"

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

// Trials with series of their own at one time; more would be slow to scrape and to keep.
constexpr std::size_t kMaxTrialSeries = 500;

// Series exist only while a trial trains, so that a long study does not leave thousands behind.
void AddTrialMetrics(const View& view, std::vector<MetricFamily>& families) {
  std::vector<MetricFamily> gauges;
  for (const FigureRow& row : kFigureRows) {
    gauges.push_back(
        Gauge(absl::StrCat("espalier_trial_", std::string(row.metric)), std::string(row.help)));
  }
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
      metric.gauge.value = activity.figures[kFigureRows[i].figure];
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
    const int unusable = node.connected ? static_cast<int>(node.unusable.size()) : 0;
    slots[{node.gpu_type, node.spot, state}] += node.slots - unusable;
    if (unusable > 0) slots[{node.gpu_type, node.spot, "unusable"}] += unusable;
  }
  MetricFamily family =
      Gauge("espalier_slots", "Slots by GPU type, spot and state of them or their node");
  for (const auto& [kind, count] : slots) {
    ClientMetric metric;
    const auto& [gpu_type, spot, state] = kind;
    metric.label = {{"gpu_type", gpu_type}, {"spot", spot ? "yes" : "no"}, {"state", state}};
    metric.gauge.value = count;
    family.metric.push_back(std::move(metric));
  }
  return family;
}

// What the nodes that are there cost an hour, where any has a price.
void AddPrices(const View& view, std::vector<MetricFamily>& families) {
  using Kind = std::tuple<std::string, std::string, bool>;
  std::map<Kind, double> prices;
  for (const NodeView& node : view.core.Nodes()) {
    if (node.price_per_hour == 0) continue;
    prices[{TemplateOf(node.name).value_or(""), node.gpu_type, node.spot}] += node.price_per_hour;
  }
  MetricFamily family = Gauge("espalier_price_per_hour",
                              "What the pool's nodes cost an hour, by template, GPU type and spot");
  for (const auto& [kind, price] : prices) {
    ClientMetric metric;
    const auto& [node_template, gpu_type, spot] = kind;
    metric.label = {
        {"template", node_template}, {"gpu_type", gpu_type}, {"spot", spot ? "yes" : "no"}};
    metric.gauge.value = price;
    family.metric.push_back(std::move(metric));
  }
  if (!family.metric.empty()) families.push_back(std::move(family));
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

MetricFamily TextsParsed() {
  MetricFamily family;
  family.name = "espalier_study_texts_parsed_total";
  family.help = "Texts of study files that this process has parsed";
  family.type = prometheus::MetricType::Counter;
  ClientMetric metric;
  metric.counter.value = static_cast<double>(StudyTextsParsed());
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
  AddPrices(view, families);
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
  families.push_back(TextsParsed());
  std::vector<MetricFamily> counted = registry_.Collect();
  families.insert(families.end(), std::make_move_iterator(counted.begin()),
                  std::make_move_iterator(counted.end()));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace espalier
