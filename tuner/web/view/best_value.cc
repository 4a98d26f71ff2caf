#include "tuner/web/view/best_value.h"

#include "tuner/core/state/curve.h"

namespace espalier::view {

BestSoFar BestOf(const Trial& trial, const StudySpec& spec) {
  const Direction direction = spec.direction();
  BestSoFar best;
  for (const IntermediateValue& value : trial.values) {
    if (best.value && !Better(direction, value.value, *best.value)) continue;
    best.value = value.value;
    best.step = static_cast<double>(value.step);
  }
  const bool final = trial.value && trial.state == TrialState::kComplete;
  if (final || (trial.value && (!best.value || !Better(direction, *best.value, *trial.value)))) {
    best.value = trial.value;
  }
  if (spec.directions.size() > 1) {
    if (!trial.values.empty()) {
      best.value = trial.values.back().value;
      best.step = static_cast<double>(trial.values.back().step);
    }
    if (trial.value) best.value = trial.value;
  }
  return best;
}

const std::vector<IntermediateValue>& CurveOf(const Trial& trial, std::size_t objective) {
  static const std::vector<IntermediateValue> kNothing;
  if (objective == 0) return trial.values;
  const auto& others = *trial.other_curves;
  return objective <= others.size() ? others[objective - 1] : kNothing;
}

std::optional<double> ValueOf(const Trial& trial, const StudySpec& spec, std::size_t objective) {
  if (objective == 0) return BestOf(trial, spec).value;
  if (objective <= trial.other_values.size()) return trial.other_values[objective - 1];
  const std::vector<IntermediateValue>& curve = CurveOf(trial, objective);
  return curve.empty() ? std::nullopt : std::optional(curve.back().value);
}

std::vector<std::string> MetricsOf(const StudySpec& spec) {
  std::vector<std::string> names;
  if (!spec.other_metrics.empty()) names.push_back(spec.metric);
  names.insert(names.end(), spec.other_metrics.begin(), spec.other_metrics.end());
  return names;
}

}  // namespace espalier::view
