// What is true at the moment of asking.

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <map>
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

}  // namespace

std::vector<MetricFamily> StateMetrics(const View& view) {
  // Every state is listed, also with 0: a series that vanishes is hard to watch.
  std::map<StudyState, std::int64_t> studies{{StudyState::kRunning, 0},
                                             {StudyState::kStopped, 0},
                                             {StudyState::kComplete, 0},
                                             {StudyState::kFailed, 0}};
  std::map<TrialState, std::int64_t> trials{
      {TrialState::kWaiting, 0},  {TrialState::kRunning, 0}, {TrialState::kPaused, 0},
      {TrialState::kComplete, 0}, {TrialState::kPruned, 0},  {TrialState::kFail, 0}};
  for (const auto& [id, study] : view.core.state().studies) ++studies[study.state];
  for (const auto& [id, trial] : view.core.state().trials) ++trials[trial.state];
  return {ByState("espalier_studies", "Studies by state", studies),
          ByState("espalier_trials", "Trials by state", trials),
          Single("espalier_slots_total", "Slots of the pool", view.core.SlotsTotal()),
          Single("espalier_slots_held", "Slots held by trials", view.core.SlotsHeld())};
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
  families.push_back(
      Single("process_resident_memory_bytes", "Resident memory", ResidentBytes()));
  std::vector<MetricFamily> counted = registry_.Collect();
  families.insert(families.end(), std::make_move_iterator(counted.begin()),
                  std::make_move_iterator(counted.end()));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace espalier
