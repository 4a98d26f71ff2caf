#include "tuner/core/state/trial_tally.h"

#include <algorithm>
#include <cmath>

#include "search_spaces/formats/optuna/constraints.h"
#include "tuner/core/state/study_facts.h"

namespace espalier {

namespace {

constexpr double kMicroseconds = 1e6;  // in a second

}  // namespace

TrialTally::TrialTally(const StudySpec& spec)
    : direction_(spec.direction()),
      ranked_(spec.directions.size() == 1),
      of_pool_(!spec.by_clients()),
      max_step_(spec.max_step),
      members_(spec.population.on() ? spec.max_trials : 0) {}

std::int64_t TrialTally::ended() const {
  return count(TrialState::kComplete) + count(TrialState::kPruned) + count(TrialState::kFail);
}

double TrialTally::done() const {
  const double begun =
      max_step_ > 0 ? static_cast<double>(steps_) / static_cast<double>(max_step_) : 0;
  if (members_ == 0) return static_cast<double>(ended()) + begun;
  const auto over = static_cast<double>(ended() - count(TrialState::kPruned));
  const double placed = over + static_cast<double>(placed_);
  return placed > 0 ? (over + begun) / placed * static_cast<double>(members_) : 0;
}

double TrialTally::slot_seconds() const { return static_cast<double>(slot_us_) / kMicroseconds; }

void TrialTally::Count(const StudySpec& spec, const Trial& trial, int sign) {
  by_state_[static_cast<std::size_t>(trial.state)] += sign;
  if (!Ended(trial.state) && !trial.values.empty()) {
    // Clients of Optuna may give any step.
    steps_ += sign * std::clamp<std::int64_t>(trial.values.back().step, 0, max_step_);
  }
  // A clone begins where its parent was, which it has told with its first value.
  const bool placed = !trial.values.empty() || !trial.lineage->cloned();
  if (!Ended(trial.state) && placed) placed_ += sign;
  const auto number = static_cast<std::size_t>(trial.number);
  if (held_times_.size() <= number) held_times_.resize(number + 1);
  if (const std::optional<bool> breaks = BreaksIfTold(spec, trial)) {
    (*breaks ? kept_.breaks : kept_.keep) += sign;
  }
  if (trial.state == TrialState::kFail && !trial.cancelled) CountFailure(trial, sign);
  if (trial.generation > 0) in_group_ += sign;
  if (!trial.values.empty() || trial.state == TrialState::kComplete) at_work_ += sign;
  if (of_pool_ && trial.state == TrialState::kComplete) CountReaders(trial, sign);
}

void TrialTally::CountReaders(const Trial& trial, int sign) {
  for (const Parameter& parameter : trial.parameters) {
    const auto at = readers_.try_emplace(parameter.name).first;
    at->second.complete += sign;
    if (trial.attributes.system.contains(UnreadAttribute(parameter.name))) {
      at->second.unread += sign;
    }
    if (at->second.complete == 0) readers_.erase(at);
  }
}

// A failed trial never leaves that state, so one that is left out comes back, and none that was
// dropped for it is missed.
void TrialTally::CountFailure(const Trial& trial, int sign) {
  const Failure failure{trial.ended, trial.id};
  const auto at = std::lower_bound(failures_.begin(), failures_.end(), failure);
  if (sign > 0) {
    failures_.insert(at, failure);
    if (failures_.size() > kFailuresKept) failures_.erase(failures_.begin());
  } else if (at != failures_.end() && *at == failure) {
    failures_.erase(at);
  }
}

bool TrialTally::Beats(const Best& one) const {
  if (!best_ || one.complete != best_->complete) return !best_ || one.complete;
  if (Better(direction_, one.value, best_->value)) return true;
  return one.number < best_->number && !Better(direction_, best_->value, one.value);
}

bool TrialTally::Rank(const Trial& trial) {
  if (!ranked_) return true;
  const std::optional<double> value = BestValue(trial, direction_);
  const bool counts = value && std::isfinite(*value) && KeepsTo(*trial.constraints);
  const Best now{trial.number, value.value_or(0), trial.state == TrialState::kComplete};
  if (!best_ || best_->number != trial.number) {
    if (counts && Beats(now)) best_ = now;
    return true;
  }
  const bool worse = now.complete == best_->complete && Better(direction_, best_->value, now.value);
  if (!counts || worse) return false;
  best_ = now;
  return true;
}

void TrialTally::RankValue(const Trial& trial, double value) {
  if (!ranked_ || !std::isfinite(value) || !KeepsTo(*trial.constraints)) return;
  const Best now{trial.number, value, false};
  if (Beats(now)) best_ = now;
}

void TrialTally::AddSpan(const SlotSpan& span, const TermsOfNodes& terms) {
  if (span.to <= span.from) return;
  for (const Slot& slot : span.slots) {
    slot_us_ += span.to.us - span.from.us;
    Held& held = held_[slot.node];
    held.until = std::max(held.until, span.to);
    const auto told = terms.find(slot.node);
    ForEachTerms(told == terms.end() ? nullptr : &told->second, span.from, span.to,
                 [&held](std::size_t index, std::int64_t us) {
                   if (held.us.size() <= index) held.us.resize(index + 1);
                   held.us[index] += us;
                 });
  }
}

void TrialTally::NoteSpans(const Trial& trial) {
  const bool holds = !trial.spans.empty() && trial.spans.back().to == Time{};
  if (holds) {
    holders_.insert(trial.id);
  } else {
    holders_.erase(trial.id);
  }
  held_times_[static_cast<std::size_t>(trial.number)] =
      trial.spans.empty() ? HeldTime{} : HeldTime{trial.spans.front().from, trial.spans.back().to};
}

bool TrialTally::HeldAfter(NodeId node, Time moment) const {
  const auto held = held_.find(node);
  return held != held_.end() && held->second.until > moment;
}

}  // namespace espalier
