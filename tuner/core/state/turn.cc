#include "tuner/core/state/turn.h"

#include "base/check.h"

namespace espalier {

const Trial& Turn::TrialAt(TrialId id) const {
  const auto it = state_.trials.find(id);
  ESPALIER_CHECK(it != state_.trials.end(), "a trial id that the core itself holds");
  return it->second;
}

const Study& Turn::StudyAt(StudyId id) const {
  const auto it = state_.studies.find(id);
  ESPALIER_CHECK(it != state_.studies.end(), "a study id that the core itself holds");
  return it->second;
}

void Turn::Emit(Change change) {
  ESPALIER_CHECK(!observing_, "an observer emits no change");
  state_.Apply(change);
  observing_ = true;
  observe_(change);
  observing_ = false;
  result_.changes.push_back(std::move(change));
}

void Turn::Decide(StudyId study, std::int64_t number, DecisionKind kind, int from, int to,
                  std::string reason) {
  Emit(DecisionMade{study,
                    {.at = now_,
                     .trial_number = number,
                     .kind = kind,
                     .from_slots = from,
                     .to_slots = to,
                     .reason = std::move(reason)}});
}

void Turn::Decide(const Trial& trial, DecisionKind kind, int from, int to, std::string reason,
                  std::optional<AllocationFigures> figures) {
  Emit(DecisionMade{trial.study,
                    {.at = now_,
                     .trial_number = trial.number,
                     .kind = kind,
                     .from_slots = from,
                     .to_slots = to,
                     .reason = std::move(reason),
                     .figures = std::move(figures)}});
}

}  // namespace espalier
