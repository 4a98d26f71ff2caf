#include "tuner/web/view/best_value.h"

#include "tuner/core/state/curve.h"

namespace espalier::view {

BestSoFar BestOf(const Trial& trial, Direction direction) {
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
  return best;
}

}  // namespace espalier::view
