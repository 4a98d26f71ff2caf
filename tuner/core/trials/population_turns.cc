#include "tuner/core/trials/population_turns.h"

#include "tuner/core/population/truncation.h"

namespace espalier {

std::int64_t StepOfMember(const TunerState& state, std::span<const Curve> curves,
                          const Trial& trial) {
  const Curve& own = curves[static_cast<std::size_t>(trial.number)];
  if (!own.points.empty()) return own.points.back().step;
  if (!trial.lineage->cloned()) return 0;
  const auto parent = static_cast<std::size_t>(trial.lineage->parent);
  std::int64_t step = 0;
  for (const IntermediateValue& point : curves[parent].points) {
    if (point.at <= trial.created) step = point.step;
  }
  if (step > 0) return step;
  const Study& study = state.studies.at(trial.study);
  return StepOfMember(state, curves, state.trials.at(study.trials.at(parent)));
}

std::map<std::int64_t, std::int64_t> WaitingMembers(const TunerState& state,
                                                    std::span<const Curve> curves,
                                                    const PoolState& pool, const Study& study) {
  std::map<std::int64_t, std::int64_t> waiting;
  const std::int64_t drawn = study.counted();
  if (drawn < study.spec.max_trials) waiting[0] = study.spec.max_trials - drawn;
  for (const auto& [id, live] : pool.live) {
    const Trial& trial = *live.trial;
    if (trial.study != study.id || trial.state == TrialState::kRunning) continue;
    if (pool.groups.contains(id)) continue;  // it is about to start
    ++waiting[ComparedAt(study.spec.population, StepOfMember(state, curves, trial))];
  }
  return waiting;
}

}  // namespace espalier
