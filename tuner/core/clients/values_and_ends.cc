// How trials of clients take values and end, and what that means for their study.

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tuner/core/clients/client_trials.h"
#include "tuner/core/state/refusals.h"
#include "tuner/core/state/study_facts.h"

namespace espalier {

void ClientTrials::SetValue(const Trial& trial, std::int64_t step, double value) {
  HeardOf(trial.id);
  if (std::ssize(trial.values) >= kMaxReportsPerTrial) {
    turn_.reply().status = HasReportedTheMost(trial);
    return;
  }
  turn_.Emit(ValueReported{
      trial.id, {.step = step, .value = value, .at = turn_.now()}, {}, /*replace=*/true});
  EndIfTargetReached(trial, value);
}

void ClientTrials::EndIfTargetReached(const Trial& trial, double value) {
  const Study& study = turn_.StudyAt(trial.study);
  if (study.state != StudyState::kRunning || !ReachesTarget(study.spec, trial, value)) return;
  trials_.EndStudy(study.id, StudyState::kComplete,
                   absl::StrCat("trial ", trial.number, " reached the target ", *study.spec.target,
                                " with ", value));
}

void ClientTrials::EndTrial(const Trial& trial, TrialState state, std::vector<double> values) {
  for (const auto& [step, value] : ranks_.TakeRest(trial)) {
    if (step != kFinalStep) {
      turn_.Emit(ValueReported{trial.id, {.step = step, .value = value, .at = turn_.now()}});
    }
  }
  if (state == TrialState::kPruned && values.empty() && !trial.values.empty() &&
      !std::isnan(trial.values.back().value)) {
    values.push_back(trial.values.back().value);
  }
  turn_.Emit(TrialTold{.id = trial.id,
                       .state = state,
                       .values = std::move(values),
                       .started = {},
                       .ended = turn_.now()});
  HeardOf(trial.id);
  AfterEnd(trial);
}

void ClientTrials::AfterEnd(const Trial& trial) {
  if (trial.state == TrialState::kComplete && trial.value) EndIfTargetReached(trial, *trial.value);
  EndIfAllTold(trial.study);
}

// An ask-and-tell study ends when it may have no more trials and all have ended.
void ClientTrials::EndIfAllTold(StudyId id) {
  const Study& study = turn_.StudyAt(id);
  if (study.state != StudyState::kRunning) return;
  const bool full = study.spec.max_trials > 0 && study.counted() >= study.spec.max_trials;
  const bool exhausted = plugins_.Exhausted(id);
  if (!full && !exhausted) return;
  const bool all_ended = std::all_of(study.trials.begin(), study.trials.end(), [this](TrialId t) {
    return Ended(turn_.state().trials.at(t).state);
  });
  if (!all_ended) return;
  trials_.ConcludeStudy(id, full ? AllTrialsHaveEnded(study.spec)
                                 : "every configuration of the search space was tried");
}

void ClientTrials::On(const SetTrialAttributes& event) {
  if (OpenTrial(event.trial) == nullptr) return;
  SetAttributes(event.trial, event.attributes);
  HeardOf(event.trial);
}

}  // namespace espalier
