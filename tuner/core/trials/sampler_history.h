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
    const bool held_back = trial.state == TrialState::kPaused && trials.HeldByPruner(trial.id) &&
                           !trial.values.empty();
    if (!Ended(trial.state) && !held_back) {
      history.running.push_back(parameters_of(trial));
      return;
    }
    Observation seen{.trial_number = trial.number,
                     .parameters = parameters_of(trial),
                     .value = trial.value.value_or(std::nan("")),
                     .pruned = held_back || trial.state == TrialState::kPruned,
                     .last_step = trial.values.empty() ? 0 : trial.values.back().step,
                     .other_values = trial.other_values,
                     .at = held_back ? trial.values.back().at : trial.ended};
    if (held_back) seen.value = trial.values.back().value;
    if (trial.state == TrialState::kFail) seen.value = std::nan("");
    history.ended.push_back(seen);
  });
  return history;
}

}  // namespace espalier
