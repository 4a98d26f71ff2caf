#include "tuner/core/state/study_facts.h"

#include <algorithm>
#include <cmath>

#include "tuner/core/state/payments.h"
#include "tuner/core/state/slot_time.h"

namespace espalier {

double SlotSeconds(const TunerState& state, const Study& study, Time now) {
  double sum_s = 0;
  state.ForEachTrial(study, [&](const Trial& trial) { sum_s += SlotSeconds(trial, now); });
  return sum_s;
}

double SpentOn(const TunerState& state, const Study& study, Time now) {
  if (study.spec.slot_price_per_hour == 0) {
    double sum = 0;
    for (const Payment& payment : PaymentsFor(state, study, now)) sum += payment.cost;
    return sum;
  }
  return SlotSeconds(state, study, now) / kHour_s * study.spec.slot_price_per_hour;
}

double ElapsedSeconds(const Study& study, Time now) {
  if (study.state != StudyState::kRunning) return study.active_s;
  return study.active_s + std::max(0.0, SecondsBetween(study.running_since, now));
}

std::optional<double> BestValue(const Trial& trial, Direction direction) {
  if (trial.value && trial.state == TrialState::kComplete) return trial.value;
  std::optional<double> best = trial.value;
  for (const IntermediateValue& value : trial.values) {
    if (!best || Better(direction, value.value, *best)) best = value.value;
  }
  return best;
}

std::optional<std::int64_t> BestTrial(const TunerState& state, const Study& study) {
  if (study.spec.directions.size() != 1) return std::nullopt;  // there is no best of several
  // Finished trials are compared by what they ended with; others stand in while none has finished.
  for (const bool complete : {true, false}) {
    std::optional<std::int64_t> best;
    double best_value = 0;
    state.ForEachTrial(study, [&](const Trial& trial) {
      if ((trial.state == TrialState::kComplete) != complete) return;
      const std::optional<double> value = BestValue(trial, study.spec.direction());
      if (!value || std::isnan(*value)) return;
      if (!best || Better(study.spec.direction(), *value, best_value)) {
        best = trial.number;
        best_value = *value;
      }
    });
    if (best) return best;
  }
  return std::nullopt;
}

bool CompleteWithoutValue(const Study& study, const Trial& trial) {
  return !study.spec.by_clients() && trial.state == TrialState::kComplete &&
         (!trial.value || std::isnan(*trial.value));
}

const IntermediateValue* ValueAt(const Trial& trial, std::int64_t step) {
  const auto at =
      std::lower_bound(trial.values.begin(), trial.values.end(), step,
                       [](const IntermediateValue& v, std::int64_t s) { return v.step < s; });
  return at != trial.values.end() && at->step == step ? &*at : nullptr;
}

bool HasProvenInelastic(const TunerState& state, const Study& study) {
  if (study.spec.by_clients()) return false;
  bool proven = false;
  bool elastic = false;
  state.ForEachTrial(study, [&](const Trial& trial) {
    elastic = elastic || trial.generation > 0;
    proven = proven || !trial.values.empty() || trial.state == TrialState::kComplete;
  });
  return proven && !elastic;
}

}  // namespace espalier
