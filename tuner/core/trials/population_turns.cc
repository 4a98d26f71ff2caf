#include "tuner/core/trials/population_turns.h"

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

std::map<std::int64_t, std::int64_t> WaitingMembers(const TunerState& state, const PoolState& pool,
                                                    const Study& study) {
  std::map<std::int64_t, std::int64_t> waiting;
  const std::int64_t drawn = study.counted();
  if (drawn < study.spec.max_trials) waiting[0] = study.spec.max_trials - drawn;
  for (const auto& [id, live] : pool.live) {
    const Trial& trial = *live.trial;
    if (trial.study != study.id || trial.state == TrialState::kRunning) continue;
    if (pool.groups.contains(id)) continue;  // it is about to start
    ++waiting[ComparedAt(study.spec.population, StepOfMember(state, trial))];
  }
  return waiting;
}

}  // namespace espalier
