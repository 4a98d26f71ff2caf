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

std::int64_t YetToBeDrawn(const Study& study, PluginsOfStudies& plugins) {
  const std::int64_t missing = study.spec.max_trials - study.counted();
  return missing > 0 && plugins.MayDraw(study) ? missing : 0;
}

std::map<std::int64_t, std::int64_t> WaitingMembers(const TunerState& state,
                                                    std::span<const Curve> curves,
                                                    const PoolState& pool, const Study& study,
                                                    PluginsOfStudies& plugins) {
  std::map<std::int64_t, std::int64_t> waiting;
  if (const std::int64_t missing = YetToBeDrawn(study, plugins); missing > 0) waiting[0] = missing;
  for (const auto& [id, live] : pool.live) {
    const Trial& trial = *live.trial;
    if (trial.study != study.id || trial.state == TrialState::kRunning) continue;
    if (pool.groups.contains(id)) continue;  // it is about to start
    ++waiting[ComparedAt(study.spec.population, StepOfMember(state, curves, trial))];
  }
  return waiting;
}

}  // namespace espalier
