#pragma once

#include <cmath>
#include <iterator>
#include <vector>

#include "tuner/core/samplers/sampler.h"
#include "tuner/core/state/change.h"
#include "tuner/core/state/trial_draw.h"
#include "tuner/core/trials/trials.h"

namespace espalier {

// What a sampler learns from: the results of trials that have ended, and the trials under way. A
// trial that its pruner holds back stands among the former, as if it had been pruned, until it may
// go on.
struct SamplerHistory {
  std::vector<Observation> ended;
  std::vector<const Parameters*> running;
  TrialDraw names;  // of which trials the above is

  // A trial that has been created since, with the next number.
  void AddRunning(const Parameters& parameters) {
    Append(names.running, names.known++);
    running.push_back(&parameters);
  }
};

// As samplers see a trial that has ended, or is held back with the value of its last step.
inline Observation ObservationOf(const Trial& trial, const Parameters* parameters, bool held_back) {
  Observation seen{.trial_number = trial.number,
                   .parameters = parameters,
                   .value = trial.value.value_or(std::nan("")),
                   .pruned = held_back || trial.state == TrialState::kPruned,
                   .last_step = trial.values.empty() ? 0 : trial.values.back().step,
                   .other_values = trial.other_values,
                   .at = held_back ? trial.values.back().at : trial.ended};
  if (held_back) seen.value = trial.values.back().value;
  if (trial.state == TrialState::kFail) seen.value = std::nan("");
  return seen;
}

// `parameters_of` says with what a trial runs: a pointer that outlives the history. A trial that
// has not all of its parameters yet is left out: no sampler could make anything of it.
template <typename ParametersOf>
SamplerHistory HistoryOf(const TunerState& state, const Study& study, const Trials& trials,
                         ParametersOf parameters_of) {
  SamplerHistory history;
  TrialDraw& names = history.names;
  names.known = std::ssize(study.trials);
  state.ForEachTrial(study, [&](const Trial& trial) {
    const Parameters* const parameters = parameters_of(trial);
    if (Ended(trial.state)) {
      history.ended.push_back(ObservationOf(trial, parameters, false));
    } else if (trial.state == TrialState::kPaused && trials.HeldByPruner(trial.id) &&
               !trial.values.empty()) {
      history.ended.push_back(ObservationOf(trial, parameters, true));
      names.held_back.emplace_back(trial.number, trial.values.back().step);
    } else if (!study.spec.space.Validate(*parameters).ok()) {
      Append(names.left_out, trial.number);
    } else {
      history.running.push_back(parameters);
      Append(names.running, trial.number);
    }
  });
  return history;
}

}  // namespace espalier
