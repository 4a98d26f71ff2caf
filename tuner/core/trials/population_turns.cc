#include "tuner/core/trials/population_turns.h"

#include <algorithm>

#include "tuner/core/population/truncation.h"

namespace espalier {

std::int64_t StepOfMember(const TunerState& state, const Trial& trial) {
  if (!trial.values.empty()) return trial.values.back().step;
  if (!trial.lineage->cloned()) return 0;
  const Study& study = state.studies.at(trial.study);
  const Trial& parent =
      state.trials.at(study.trials.at(static_cast<std::size_t>(trial.lineage->parent)));
  std::int64_t step = 0;
  for (const IntermediateValue& value : parent.values) {
    if (value.at <= trial.created) step = value.step;
  }
  return step > 0 ? step : StepOfMember(state, parent);
}

std::int64_t WaitingBehind(const TunerState& state, const PoolState& pool, const Study& study,
                           std::int64_t step) {
  const PopulationSpec& population = study.spec.population;
  const std::int64_t compared = ComparedAt(population, step);
  if (compared == 0) return 0;
  std::int64_t waiting = std::max<std::int64_t>(0, study.spec.max_trials - study.counted());
  for (const auto& [id, live] : pool.live) {
    const Trial& trial = *live.trial;
    if (trial.study != study.id || trial.state == TrialState::kRunning) continue;
    if (pool.groups.contains(id)) continue;  // it is about to start
    if (ComparedAt(population, StepOfMember(state, trial)) < compared) ++waiting;
  }
  return waiting;
}

std::optional<std::int64_t> LeastWaiting(const TunerState& state, const PoolState& pool,
                                         const Study& study) {
  if (study.counted() < study.spec.max_trials) return 0;
  std::optional<std::int64_t> least;
  for (const auto& [id, live] : pool.live) {
    const Trial& trial = *live.trial;
    if (trial.study != study.id || trial.state == TrialState::kRunning) continue;
    if (pool.groups.contains(id)) continue;  // it is about to start
    const std::int64_t compared = ComparedAt(study.spec.population, StepOfMember(state, trial));
    least = std::min(least.value_or(compared), compared);
  }
  return least;
}

}  // namespace espalier
