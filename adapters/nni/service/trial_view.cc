#include "adapters/nni/service/trial_view.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "adapters/nni/service/names.h"
#include "base/json/parse_json.h"
#include "base/trial_folder.h"
#include "search_spaces/parameter.h"
#include "tuner/api/json.h"
#include "tuner/core/state/study_facts.h"

namespace espalier::nni {

namespace {

bool HoldsSlots(const Trial& trial) {
  return !trial.spans.empty() && trial.spans.back().to == Time{};
}

bool HasStarted(const Trial& trial) { return trial.started != Time{}; }

// What NNI calls the parameter that the trial runs with.
std::string ParameterId(const Trial& trial) {
  const auto parameter = ParseJson(TextAttribute(trial.attributes, kParameter), kMaxRecordDepth);
  if (!parameter.is_object() || !parameter.contains("parameter_id")) return "null";
  return parameter["parameter_id"].dump();
}

std::string NumberText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return espalier::ToJson(ParameterValue(value));
}

std::string OwnMetric(std::int64_t sequence, const std::string& parameter_id,
                      const std::string& value) {
  return absl::StrCat("{\"sequence\":", sequence, ",\"parameter_id\":", parameter_id,
                      ",\"value\":", QuoteJson(value), "}");
}

// A step's value and what further figures were reported with it, as NNI has them.
std::string ValueText(const Trial& trial, const IntermediateValue& value) {
  const auto extra = trial.extra.find(value.step);
  if (extra == trial.extra.end()) return NumberText(value.value);
  std::string text = absl::StrCat("{\"default\":", NumberText(value.value));
  for (const auto& [name, figure] : extra->second) {
    if (name == "default") continue;
    absl::StrAppend(&text, ",", QuoteJson(name), ":", NumberText(figure));
  }
  return absl::StrCat(text, "}");
}

// What a program of our trial runner reports by its own protocol.
void AddOwnMetrics(const Trial& trial, const EventFeed::TrialNews& news, TrialView& out) {
  if (news.by_channel || (news.steps.empty() && !news.ended)) return;
  const std::string parameter_id = ParameterId(trial);
  std::int64_t sequence = news.steps_before;
  for (const std::int64_t step : news.steps) {
    const IntermediateValue* value = ValueAt(trial, step);
    if (value == nullptr) continue;
    out.metrics.push_back(
        {kPeriodical, OwnMetric(sequence++, parameter_id, ValueText(trial, *value))});
  }
  if (!news.ended || trial.state != TrialState::kComplete || !trial.value) return;
  out.metrics.push_back({kFinal, OwnMetric(0, parameter_id, NumberText(*trial.value))});
}

// Whether the attribute of a metric holds what the channel writes there: any client may have set it
// to something else, which would not be read, or would be taken for another report.
bool IsReport(const std::string& json) {
  const auto report = ParseJson(json, kMaxRecordDepth);
  return report.is_object() && report.size() == 3 && report.contains("parameter_id") &&
         report.contains("sequence") && report["sequence"].is_number_integer() &&
         report.contains("value") && report["value"].is_string();
}

std::string Millis(Time time) {
  if (time == Time{}) return "null";
  return absl::StrCat(static_cast<std::int64_t>(Seconds(time) * 1000));
}

std::string NewestFolder(const Trial& trial, const Study& study, const View& view) {
  if (trial.spans.empty()) return "";
  const auto& nodes = view.core.state().nodes;
  const auto node = nodes.find(trial.spans.back().slots.front().node);
  if (node == nodes.end()) return "";
  const auto folder = view.folders.find(node->second);
  if (folder == view.folders.end() || folder->second.empty()) return "";
  return TrialFolder(folder->second, study.spec.name, trial.number);
}

}  // namespace

const char* StateOf(const Trial& trial) {
  switch (trial.state) {
    case TrialState::kWaiting:
      return "WAITING";
    case TrialState::kRunning:
      return "RUNNING";
    case TrialState::kPaused:
      return HasStarted(trial) ? "RUNNING" : "WAITING";
    case TrialState::kComplete:
      return "SUCCEEDED";
    case TrialState::kPruned:
      return HoldsSlots(trial) ? "RUNNING" : "EARLY_STOPPED";
    case TrialState::kFail:
      if (HoldsSlots(trial)) return "RUNNING";
      return trial.cancelled ? "USER_CANCELED" : "FAILED";
  }
  return "UNKNOWN";
}

TrialView ViewOf(const Trial& trial, const Study& study, const EventFeed::TrialNews& news,
                 const View& view) {
  TrialView out;
  out.trial = news.name;
  out.sequence = IntegerAttribute(trial.attributes, kSequence);
  out.state = StateOf(trial);
  out.submitted = trial.created;
  out.started = trial.started;
  const bool gone = trial.state == TrialState::kComplete || !HoldsSlots(trial);
  out.ended = gone ? trial.ended : Time{};
  out.message = trial.reason;
  out.directory = NewestFolder(trial, study, view);
  out.slots = view.core.Activity(trial.id).slots;
  for (const std::string& key : news.metrics) {
    const std::string* json = Attribute(trial.attributes, key.c_str());
    if (json == nullptr) continue;
    const bool final = key == std::string(kMetric) + kFinal;
    out.metrics.push_back({final ? kFinal : kPeriodical, *json});
  }
  AddOwnMetrics(trial, news, out);
  return out;
}

std::string ToJson(const TrialView& trial) {
  std::string metrics;
  for (const TrialView::Metric& metric : trial.metrics) {
    if (!IsReport(metric.json)) continue;
    absl::StrAppend(&metrics, metrics.empty() ? "" : ",", "{\"type\":\"", metric.type, "\",",
                    metric.json.substr(metric.json.find('{') + 1));
  }
  const std::string sequence = trial.sequence ? absl::StrCat(*trial.sequence) : "null";
  return absl::StrCat(
      "{\"trial\":", QuoteJson(trial.trial), ",\"sequence\":", sequence, ",\"state\":\"",
      trial.state, "\",\"submitted_at\":", Millis(trial.submitted),
      ",\"started_at\":", Millis(trial.started), ",\"ended_at\":", Millis(trial.ended),
      ",\"message\":", QuoteJson(trial.message), ",\"directory\":", QuoteJson(trial.directory),
      ",\"slots\":", trial.slots, ",\"metrics\":[", metrics, "]}");
}

}  // namespace espalier::nni
