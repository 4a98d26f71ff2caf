#include "tuner/core/estimates/promises.h"

#include <variant>

#include "tuner/core/pool/pool_state.h"

namespace espalier {

// With a new trial, value or end of one the study's other trials compare anew.
void Promises::NoteChangeOf(const Trial& trial) {
  if (!turn_.StudyAt(trial.study).spec.by_clients()) stale_.insert(trial.study);
}

void Promises::Observe(const Change& change) {
  if (const auto* created = std::get_if<TrialCreated>(&change)) {
    NoteChangeOf(turn_.TrialAt(created->id));
  }
  if (const auto* value = std::get_if<ValueReported>(&change)) {
    NoteChangeOf(turn_.TrialAt(value->id));
  }
  if (const auto* trial = std::get_if<TrialStateChanged>(&change); trial && Ended(trial->state)) {
    NoteChangeOf(turn_.TrialAt(trial->id));
  }
  if (const auto* study = std::get_if<StudyStateChanged>(&change)) {
    if (UsesPool(turn_.StudyAt(study->id))) stale_.insert(study->id);
  }
  if (const auto trial = TrialEndedBy(change)) promise_.erase(*trial);
  if (const auto study = StudyEndedBy(change)) computed_.erase(*study);
  if (const auto* deleted = std::get_if<StudyDeleted>(&change)) {
    std::erase_if(promise_, [this](const auto& promise) {
      return !turn_.state().trials.contains(promise.first);
    });
    stale_.erase(deleted->id);
  }
}

bool Promises::TakeDue(const Study& study) {
  if (!stale_.contains(study.id)) return false;
  if (study.trials.size() > kEveryReport) {
    Time& last = computed_[study.id];
    if (last != Time{} && SecondsBetween(last, turn_.now()) < kInterval_s) return false;
    last = turn_.now();
  }
  stale_.erase(study.id);
  return true;
}

std::optional<double> Promises::Find(TrialId trial) const {
  const auto found = promise_.find(trial);
  return found == promise_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace espalier
