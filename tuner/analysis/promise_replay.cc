#include "tuner/analysis/promise_replay.h"

#include <span>

#include "tuner/core/estimates/equal_progress.h"
#include "tuner/core/promise/replay.h"

namespace espalier {

Reliability PromiseReliability(const StudySpec& spec, const std::vector<Trial>& trials) {
  if (spec.directions.size() > 1)
    return MeasureReliability({});  // promise is of one objective here
  EqualProgress equal;
  const bool adaptive = spec.batch_mode == BatchMode::kAdaptive;
  for (const Trial& trial : trials) {
    if (adaptive) equal.Take(trial);
  }
  std::vector<PastTrial> past;
  for (const Trial& trial : trials) {
    const std::span<const IntermediateValue> points =
        adaptive ? equal.Points(trial, Ended(trial.state))
                 : std::span<const IntermediateValue>(trial.values);
    past.push_back({points, trial.created, trial.ended, trial.state == TrialState::kComplete});
  }
  return MeasureReliability(ReplayPromise(spec.direction(), past, {spec.best_k, spec.max_step}));
}

}  // namespace espalier
