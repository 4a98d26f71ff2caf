#include "tuner/analysis/study_copy.h"

#include <algorithm>

#include "search_spaces/formats/optuna/constraints.h"

namespace espalier {

TrialCopy CopyOf(const Trial& trial, bool full) {
  TrialCopy copy;
  copy.id = trial.id;
  copy.study = trial.study;
  copy.number = trial.number;
  copy.state = trial.state;
  copy.started = trial.started;
  copy.ended = trial.ended;
  if (trial.value) {
    copy.values.reserve(1 + trial.other_values.size());
    copy.values.push_back(*trial.value);
    copy.values.insert(copy.values.end(), trial.other_values.begin(), trial.other_values.end());
  }
  copy.parameters = trial.parameters;
  copy.suggested = trial.suggested;
  copy.constraints = *trial.constraints;
  copy.attributes.user = trial.attributes.user;
  copy.reported = !trial.values.empty();
  if (!full) return copy;
  copy.attributes.system = trial.attributes.system;
  AddConstraints(copy.constraints, copy.attributes.system);
  copy.reports.reserve(trial.values.size());
  for (const IntermediateValue& value : trial.values) {
    copy.reports.emplace_back(value.step, value.value);
  }
  return copy;
}

bool StudyCopier::GoOn(const TunerState& state, const Study& study, std::size_t most_trials) {
  const std::size_t end = std::min(study.trials.size(), copy_.trials.size() + most_trials);
  for (std::size_t i = copy_.trials.size(); i < end; ++i) {
    const Trial& trial = state.trials.at(study.trials[i]);
    copy_.trials.push_back(CopyOf(trial, trial.number >= full_from_));
  }
  if (end < study.trials.size()) return false;
  // Last, so that it knows all that the trials speak of.
  copy_.head.id = study.id;
  copy_.head.spec = study.spec;
  copy_.head.suggestions = study.suggestions;
  return true;
}

}  // namespace espalier
