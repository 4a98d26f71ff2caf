#pragma once

#include <cmath>
#include <vector>

#include "tuner/core/samplers/sampler.h"
#include "tuner/core/state/change.h"
#include "tuner/core/trials/trials.h"

namespace espalier {

// What a sampler learns from: the results of trials that have ended, and the trials under way. A
// trial that its pruner holds back stands among the former, as if it had been pruned, until it may
// go on.
struct SamplerHistory {
  std::vector<Observation> ended;
  std::vector<const Parameters*> running;
};

// `parameters_of` says with what a trial runs: a pointer that outlives the history.
template <typename ParametersOf>
SamplerHistory HistoryOf(const TunerState& state, const Study& study, const Trials& trials,
                         ParametersOf parameters_of) {
  SamplerHistory history;
  state.ForEachTrial(study, [&](const Trial& trial) {
    const bool held_back = trial.state == TrialState::kPaused && trials.HeldByPruner(trial.id);
    if (held_back && !trial.values.empty()) {
      const IntermediateValue& last = trial.values.back();
      history.ended.push_back({.trial_number = trial.number,
                               .parameters = parameters_of(trial),
                               .value = last.value,
                               .pruned = true,
                               .last_step = last.step});
      return;
    }
    if (!Ended(trial.state)) {
      history.running.push_back(parameters_of(trial));
      return;
    }
    const bool failed = trial.state == TrialState::kFail;
    history.ended.push_back({.trial_number = trial.number,
                             .parameters = parameters_of(trial),
                             .value = failed ? std::nan("") : trial.value.value_or(std::nan("")),
                             .pruned = trial.state == TrialState::kPruned,
                             .last_step = trial.values.empty() ? 0 : trial.values.back().step});
  });
  return history;
}

}  // namespace espalier
