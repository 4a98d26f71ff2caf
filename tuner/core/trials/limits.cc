#include "tuner/core/trials/limits.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tuner/core/state/slot_time.h"
#include "tuner/core/state/study_facts.h"

namespace espalier {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kSoonestCostCheck_s = 0.1;

}  // namespace

void Limits::Observe(const Change& change) {
  if (const auto study = StudyEndedBy(change)) cost_check_.erase(*study);
}

std::optional<Time> Limits::Next() const {
  std::optional<Time> next;
  for (const StudyId id : pool_.studies) {
    const Study& study = turn_.StudyAt(id);
    if (const auto check = cost_check_.find(id); check != cost_check_.end()) {
      next = Earlier(next, check->second.at);
    }
    if (study.spec.time_limit_s > 0) {
      next = Earlier(next, After(study.running_since, study.spec.time_limit_s - study.active_s));
    }
  }
  return next;
}

int Limits::SlotsHeldByStudy(const Study& study) const {
  int held = 0;
  for (const auto& [id, replica] : pool_.replicas) {
    held += turn_.state().trials.at(replica.trial).study == study.id ? replica.slots() : 0;
  }
  return held;
}

// Slots cost until their processes are gone, and a look happens now and then: both are set aside.
bool Limits::OverCost(const Study& study) {
  CostCheck& check = cost_check_[study.id];
  const int slots = std::max(1, pool_.SlotsTotal());
  if (check.at > turn_.now() && slots <= check.slots) return false;
  const double price_per_s = study.spec.slot_price_per_hour / kHour_s;
  const double left = study.spec.cost_limit - SpentOn(turn_.state(), study, turn_.now());
  const double reserve_s = study.spec.stop_grace_s + kSoonestCostCheck_s;
  const double free = left - SlotsHeldByStudy(study) * price_per_s * reserve_s;
  if (free <= 0) return true;
  const double soonest_s = free / (slots * price_per_s);
  check = {After(turn_.now(), std::max(kSoonestCostCheck_s, 0.5 * soonest_s)), slots};
  return false;
}

std::map<StudyId, std::string> Limits::Over() {
  std::map<StudyId, std::string> over;
  for (const StudyId id : pool_.studies) {
    const Study& study = turn_.StudyAt(id);
    const StudySpec& spec = study.spec;
    if (spec.time_limit_s > 0 && ElapsedSeconds(study, turn_.now()) >= spec.time_limit_s) {
      over[id] = absl::StrCat("time limit of ", spec.time_limit_s, " s reached");
    } else if (spec.cost_limit > 0 && OverCost(study)) {
      over[id] = absl::StrFormat("cost limit of %g reached: %.4g spent, and what stopping costs",
                                 spec.cost_limit, SpentOn(turn_.state(), study, turn_.now()));
    }
  }
  return over;
}

double Limits::TimeLeft(const Study& study) const {
  const StudySpec& spec = study.spec;
  double left_s = kNever;
  if (spec.time_limit_s > 0) left_s = spec.time_limit_s - ElapsedSeconds(study, turn_.now());
  if (spec.cost_limit > 0) {
    const double left = spec.cost_limit - SpentOn(turn_.state(), study, turn_.now());
    const int held = std::max(spec.min_slots, SlotsHeldByStudy(study));
    left_s = std::min(left_s, left / (held * spec.slot_price_per_hour / kHour_s));
  }
  return std::max(0.0, left_s);
}

// Trials that have run to their end are compared before all others, so that one that cannot get
// there will not be the study's best. While no end is in sight a first value is all that can be
// asked for.
double Limits::SecondsToBeOfUse(const Study& study) const {
  const std::int64_t last_step = pool_.LastStepOf(study);
  double to_end_s = kNever;
  double to_value_s = kNever;
  for (const TrialId id : study.trials) {
    const Trial& trial = turn_.state().trials.at(id);
    if (trial.values.empty() || trial.started == Time{}) continue;
    const IntermediateValue& last = trial.values.back();
    to_value_s = std::min(to_value_s, SecondsBetween(trial.started, trial.values.front().at));
    if (trial.state == TrialState::kComplete) {
      to_end_s = std::min(to_end_s, SecondsBetween(trial.started, trial.ended));
    } else if (last_step > 0 && last.step > 0) {
      to_end_s =
          std::min(to_end_s, SecondsBetween(trial.started, last.at) *
                                 static_cast<double>(last_step) / static_cast<double>(last.step));
    }
  }
  if (to_end_s < kNever) return to_end_s;
  return to_value_s < kNever ? to_value_s : 0;
}

bool Limits::TooLateForNewTrials(const Study& study) {
  if (study.spec.time_limit_s <= 0 && study.spec.cost_limit <= 0) return false;
  const double left_s = TimeLeft(study);
  const double needed_s = SecondsToBeOfUse(study);
  const bool late = left_s < needed_s;
  StudyPlugins& plugins = plugins_.Of(study);
  if (late && !plugins.too_late) {
    turn_.Decide(study.id, -1, DecisionKind::kStudy, 0, 0,
                 absl::StrFormat("no new trials: %.0f s are left, the fastest so far needs %.0f s",
                                 left_s, needed_s));
  }
  plugins.too_late = late;
  return late;
}

}  // namespace espalier
