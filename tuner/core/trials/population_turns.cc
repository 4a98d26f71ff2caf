#include "tuner/core/trials/population_turns.h"

#include <algorithm>
#include <limits>

#include "tuner/core/population/truncation.h"

namespace espalier {

namespace {

// Its step by what was known at that moment: a clone's is its parent's until it has told its own.
std::int64_t StepUntil(const TunerState& state, std::span<const Curve> curves, const Trial& trial,
                       Time until) {
  std::int64_t step = 0;
  for (const IntermediateValue& point : curves[static_cast<std::size_t>(trial.number)].points) {
    if (point.at <= until) step = point.step;
  }
  if (step > 0 || !trial.lineage->cloned()) return step;
  const Study& study = state.studies.at(trial.study);
  const auto parent = static_cast<std::size_t>(trial.lineage->parent);
  return StepUntil(state, curves, state.trials.at(study.trials.at(parent)),
                   std::min(until, trial.created));
}

}  // namespace

std::int64_t StepOfMember(const TunerState& state, std::span<const Curve> curves,
                          const Trial& trial) {
  return StepUntil(state, curves, trial, {std::numeric_limits<std::int64_t>::max()});
}

std::int64_t YetToBeDrawn(const Study& study, PluginsOfStudies& plugins) {
  const std::int64_t missing = study.spec.max_trials - study.counted();
  const bool may_draw = plugins.MayDraw(study) && !plugins.Of(study).too_late;
  return missing > 0 && may_draw ? missing : 0;
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
