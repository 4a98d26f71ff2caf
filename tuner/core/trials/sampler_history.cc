#include "tuner/core/trials/sampler_history.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "search_spaces/formats/optuna/cross_validation.h"

namespace espalier {

namespace {

void AddByNumber(std::vector<Observation>& observations, const Observation& seen) {
  const auto after =
      std::ranges::upper_bound(observations, seen.trial_number, {}, &Observation::trial_number);
  observations.insert(after, seen);
}

// What the trial has told of the error of its value: the figure of its newest step, or the scores
// of its folds.
double StandardErrorOf(const Trial& trial) {
  if (!trial.extra.empty()) {
    const auto& figures = trial.extra.rbegin()->second;
    const auto told = figures.find(std::string(kStandardErrorFigure));
    if (told != figures.end() && told->second >= 0) return told->second;
  }
  return CrossValidationError(trial.attributes.system);
}

}  // namespace

Observation ObservationOf(const Trial& trial, const Parameters* parameters, bool held_back) {
  Observation seen{.trial_number = trial.number,
                   .parameters = parameters,
                   .value = trial.value.value_or(std::nan("")),
                   .pruned = held_back || trial.state == TrialState::kPruned,
                   .last_step = trial.values.empty() ? 0 : trial.values.back().step,
                   .other_values = trial.other_values,
                   .constraints = *trial.constraints,
                   .at = held_back ? trial.values.back().at : trial.ended,
                   .standard_error = StandardErrorOf(trial)};
  if (held_back) seen.value = trial.values.back().value;
  if (trial.state == TrialState::kFail) seen.value = std::nan("");
  return seen;
}

const KeptTrial& SamplerHistory::Keep(const Trial& trial, const Parameters& parameters) {
  const Observation seen = ObservationOf(trial, &parameters, false);
  return kept_->emplace_back(KeptTrial{parameters,
                                       {seen.other_values.begin(), seen.other_values.end()},
                                       {seen.constraints.begin(), seen.constraints.end()}});
}

Observation SamplerHistory::Held(const Trial& trial, const Parameters& parameters) {
  const Parameters*& kept = kept_of_held_[trial.number];
  if (kept == nullptr) kept = &Keep(trial, parameters).parameters;
  return ObservationOf(trial, kept, true);
}

void SamplerHistory::Update(const TunerState& state, const Study& study,
                            const KnownTrials& trials) {
  for (; seen_ < std::ssize(study.trials); ++seen_) open_.push_back(seen_);
  names_ = {};
  names_.known = seen_;
  running_.clear();
  with_held_.clear();
  std::vector<Observation> held;
  std::erase_if(open_, [&](std::int64_t number) {
    const Trial& trial = state.trials.at(study.trials[static_cast<std::size_t>(number)]);
    if (trial.lineage->cloned()) return true;
    const Parameters* const parameters = trials.parameters_of(trial);
    if (Ended(trial.state)) {
      const KeptTrial& kept = Keep(trial, *parameters);
      Observation seen = ObservationOf(trial, &kept.parameters, false);
      seen.other_values = kept.other_values;
      seen.constraints = kept.constraints;
      AddByNumber(ended_, seen);
      ended_tell_ = ended_tell_ || !seen.constraints.empty();
      return true;
    }
    if (trial.state == TrialState::kPaused && trials.held_by_pruner(trial) &&
        !trial.values.empty()) {
      held.push_back(Held(trial, *parameters));
      names_.held_back.emplace_back(number, trial.values.back().step);
    } else if (trial.draw->empty() && !study.spec.space.Validate(*parameters).ok()) {
      Append(names_.left_out, number);
    } else {
      running_.push_back(parameters);
      Append(names_.running, number);
    }
    return false;
  });
  held_tell_ =
      std::ranges::any_of(held, [](const Observation& seen) { return !seen.constraints.empty(); });
  if (held.empty()) return;
  with_held_ = ended_;
  for (const Observation& seen : held) AddByNumber(with_held_, seen);
}

}  // namespace espalier
