#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tuner/core/state/refusals.h"
#include "tuner/web/view/best_value.h"
#include "tuner/web/view/copied_curve.h"
#include "tuner/web/view/decimation.h"
#include "tuner/web/view/json_text.h"
#include "tuner/web/view/views.h"
#include "tuner/web/view/words.h"

namespace espalier::view {

namespace {

constexpr double kMillisecond_s = 1e-3;
constexpr std::size_t kOfColumn = 4;  // that Decimate leaves of one, at the most

// Of many values those that a picture shows: the first, the lowest, the highest and the last of so
// many that follow one another.
std::vector<IntermediateValue> Thinned(const std::vector<IntermediateValue>& values,
                                       std::size_t most) {
  if (values.size() <= most) return values;
  std::vector<double> x, y;
  for (const IntermediateValue& value : values) {
    x.push_back(static_cast<double>(x.size()));
    y.push_back(value.value);
  }
  const auto columns = static_cast<int>(std::max<std::size_t>(1, most / kOfColumn));
  std::vector<IntermediateValue> kept;
  for (const std::size_t i : Decimate(x, y, PixelColumns(0, x.back(), columns, /*log=*/false))) {
    kept.push_back(values[i]);
  }
  return kept;
}

struct RecordedCurve {
  CopiedCurve curve;
  std::size_t points = 0;  // behind it
};

// As a number of few digits, where that does not change what it is.
void PutShort(JsonText& json, double value) {
  const auto few = static_cast<float>(value);
  const bool fits = std::isfinite(few) && (few != 0 || value == 0);
  fits ? json.Value(few) : json.Value(value);
}

// Numbers that mostly ascend by little, as the first one and what each adds; one number of what
// each adds stands for all where they are equal.
void PutSteps(JsonText& json, std::string_view key, const std::vector<std::int64_t>& numbers) {
  json.Key(key);
  json.Array([&] {
    json.Value(numbers.front());
    std::vector<std::int64_t> added;
    for (std::size_t i = 1; i < numbers.size(); ++i) added.push_back(numbers[i] - numbers[i - 1]);
    const bool even =
        std::equal(added.begin() + (added.empty() ? 0 : 1), added.end(), added.begin());
    if (even && !added.empty()) added.resize(1);
    for (const std::int64_t each : added) json.Value(each);
  });
}

std::vector<std::int64_t> Milliseconds(const std::vector<double>& seconds) {
  std::vector<std::int64_t> whole;
  for (const double s : seconds) whole.push_back(std::llround(s / kMillisecond_s));
  return whole;
}

// A column of figures, where any of them is known; null: not known.
template <typename Of>
void PutKnown(JsonText& json, std::string_view key, const std::vector<IntermediateValue>& values,
              Of of) {
  if (std::none_of(values.begin(), values.end(), [&](const auto& value) { return of(value) > 0; }))
    return;
  json.Key(key);
  json.Array(values, [&](const IntermediateValue& value) {
    of(value) > 0 ? json.Value(of(value)) : json.Null();
  });
}

void Put(JsonText& json, const RecordedCurve& recorded) {
  const CopiedCurve& curve = recorded.curve;
  const auto places = [&curve](CurvesWanted::Axis axis) { return PlacesOn(axis, false, curve); };
  std::vector<std::int64_t> steps;
  for (const IntermediateValue& value : curve.values) steps.push_back(value.step);
  json.Object([&] {
    json.Member("trial_id", curve.id.value);
    json.Member("trial", curve.number);
    json.Member("state", WordOf(curve.state));
    if (curve.infeasible) json.Member("infeasible", *curve.infeasible);
    json.Member("points", recorded.points);
    if (curve.values.empty()) return;
    PutSteps(json, "step", steps);
    PutSteps(json, "at_ms", Milliseconds(places(CurvesWanted::Axis::kTime)));
    PutSteps(json, "slot_ms", Milliseconds(places(CurvesWanted::Axis::kSlotSeconds)));
    json.Key("y");
    json.Array(curve.values, [&](const IntermediateValue& value) { PutShort(json, value.value); });
    PutKnown(json, "progress", curve.values,
             [](const IntermediateValue& value) { return static_cast<float>(value.progress); });
    PutKnown(json, "promise", curve.values,
             [](const IntermediateValue& value) { return value.promise; });
    PutKnown(json, "goodput", curve.values,
             [](const IntermediateValue& value) { return value.goodput; });
    PutKnown(json, "batch_size", curve.values,
             [](const IntermediateValue& value) { return static_cast<float>(value.batch_size); });
  });
}

// Of one metric, by number, those that have told a value.
std::vector<RecordedCurve> CurvesOf(const Study& study, const TunerState& state,
                                    const RecordLimits& limits, std::size_t objective) {
  const std::size_t trials = std::max<std::size_t>(1, study.trials.size());
  const std::size_t all_curves = trials * (1 + study.spec.other_metrics.size());
  const std::size_t most = std::max(limits.least_values, limits.values / all_curves);
  std::vector<RecordedCurve> curves;
  state.ForEachTrial(study, [&](const Trial& trial) {
    const std::vector<IntermediateValue>& told = CurveOf(trial, objective);
    if (told.empty()) return;
    RecordedCurve& recorded = curves.emplace_back();
    recorded.points = told.size();
    recorded.curve = HeadOfCurve(trial, study.spec);
    recorded.curve.values = Thinned(told, most);
  });
  return curves;
}

}  // namespace

absl::StatusOr<std::string> RecordJson(const Source& source, StudyId id,
                                       const std::map<std::string, std::string>& more,
                                       const RecordLimits& limits) {
  std::vector<std::vector<RecordedCurve>> curves;  // by metric
  std::vector<TrialId> trials;
  std::int64_t decided = 0;
  bool found = false;
  ESPALIER_RETURN_IF_ERROR(source.tuner.Read([&](const View& view) {
    const TunerState& state = view.core.state();
    const auto study = state.studies.find(id);
    if (study == state.studies.end()) return;
    found = true;
    trials = study->second.trials;
    decided = study->second.decisions_made;
    for (std::size_t i = 0; i <= study->second.spec.other_metrics.size(); ++i) {
      curves.push_back(CurvesOf(study->second, state, limits, i));
    }
  }));
  if (!found) return NoStudy(id);
  std::map<std::string, absl::StatusOr<std::string>> parts;
  parts.emplace("overview", OverviewJson(source));
  parts.emplace("study", StudyJson(source, id));
  TrialsWanted all_trials;
  all_trials.rows = std::numeric_limits<std::int32_t>::max();
  parts.emplace("trials", TrialsJson(source, id, all_trials));
  LanesWanted lanes;
  lanes.width = LanesWanted::kMaxWidth;
  lanes.study = id;
  parts.emplace("lanes", LanesJson(source, lanes));
  DecisionsWanted decisions;
  decisions.study = id;
  decisions.rows = limits.decisions;
  parts.emplace("decisions", DecisionsJson(source, decisions));
  parts.emplace("analyses", AnalysesJson(source, id));
  JsonText json;
  absl::Status status = absl::OkStatus();
  json.Object([&] {
    json.Member("version", kVersion);
    json.Member("decided", decided);
    for (const auto& [key, part] : parts) {
      status.Update(part.status());
      if (!part.ok()) continue;
      json.Key(key);
      json.Raw(*part);
    }
    json.Key("curves");
    const auto put = [&json](const auto& of) {
      json.Array(of, [&json](const RecordedCurve& curve) { Put(json, curve); });
    };
    put(curves.front());
    json.Key("other_curves");
    json.Array(std::span(curves).subspan(1), put);
    json.Key("facts");
    json.Array(trials, [&](TrialId trial) {
      const absl::StatusOr<std::string> facts = TrialAloneJson(source, trial);
      status.Update(facts.status());
      if (facts.ok()) json.Raw(*facts);
    });
    for (const auto& [key, text] : more) {
      json.Key(key);
      json.Raw(text);
    }
  });
  if (!status.ok()) return status;
  return json.Take();
}

}  // namespace espalier::view
