#include "tuner/core/state/study_facts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "search_spaces/formats/optuna/constraints.h"
#include "tuner/core/state/newest_figure.h"
#include "tuner/core/state/payments.h"
#include "tuner/core/state/slot_time.h"

namespace espalier {

namespace {

// Of the first metric, of a trial that has told values: final, else the newest.
double ValueOf(const Trial& trial) { return trial.value.value_or(trial.values.back().value); }

}  // namespace

std::optional<double> NewestFigure(const StudySpec& spec, const Constraint& constraint,
                                   const Trial& trial) {
  if (trial.values.empty()) return std::nullopt;
  if (constraint.figure == spec.metric) return ValueOf(trial);
  for (auto told = trial.extra.rbegin(); told != trial.extra.rend(); ++told) {
    const auto figure = told->second.find(constraint.figure);
    if (figure != told->second.end()) return figure->second;
  }
  return std::nullopt;
}

double SlotSeconds(const TunerState& state, const Study& study, Time now) {
  const TrialTally& tally = state.TallyOf(study);
  double sum_s = tally.slot_seconds();
  for (const TrialId id : tally.holders()) {
    const SlotSpan& span = state.trials.at(id).spans.back();
    sum_s += std::max(0.0, HeldSeconds(span, now)) * static_cast<double>(span.slots.size());
  }
  return sum_s;
}

double SpentOn(const TunerState& state, const Study& study, Time now) {
  if (study.spec.slot_price_per_hour == 0) {
    double sum = 0;
    for (const Payment& payment : PaymentsFor(state, study, now)) sum += payment.cost;
    return sum;
  }
  return SlotSeconds(state, study, now) / kHour_s * study.spec.slot_price_per_hour;
}

double ElapsedSeconds(const Study& study, Time now) {
  if (study.state != StudyState::kRunning) return study.active_s;
  return study.active_s + std::max(0.0, SecondsBetween(study.running_since, now));
}

std::string UnreadAttribute(const std::string& parameter) {
  return absl::StrCat("espalier:unread:", parameter);
}

std::optional<double> BestValue(const Trial& trial, Direction direction) {
  if (trial.value && trial.state == TrialState::kComplete) return trial.value;
  std::optional<double> best = trial.value;
  for (const IntermediateValue& value : trial.values) {
    if (!best || Better(direction, value.value, *best)) best = value.value;
  }
  return best;
}

std::optional<std::int64_t> BestTrial(const TunerState& state, const Study& study) {
  const std::optional<TrialTally::Best>& best = state.TallyOf(study).best();
  return best ? std::optional(best->number) : std::nullopt;
}

bool ReachesTarget(const StudySpec& spec, const Trial& trial, double value) {
  return spec.target && Counts(spec.direction(), value) &&
         !Better(spec.direction(), *spec.target, value) && KeepsTo(*trial.constraints);
}

bool CompleteWithoutValue(const Study& study, const Trial& trial) {
  return !study.spec.by_clients() && trial.state == TrialState::kComplete &&
         (!trial.value || std::isnan(*trial.value));
}

const IntermediateValue* ValueAt(const Trial& trial, std::int64_t step) {
  const IntermediateValue* newest = NewestUntil(trial.values, step);
  return newest != nullptr && newest->step == step ? newest : nullptr;
}

void TakeOtherMetrics(const StudySpec& spec, std::int64_t step, Trial& trial) {
  const auto told = trial.extra.find(step);
  const IntermediateValue* value = ValueAt(trial, step);
  if (spec.other_metrics.empty() || told == trial.extra.end() || value == nullptr) return;
  std::vector<std::vector<IntermediateValue>>& curves = trial.other_curves.edit();
  curves.resize(spec.other_metrics.size());
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const auto figure = told->second.find(spec.other_metrics[i]);
    if (figure == told->second.end()) continue;
    const auto at =
        std::lower_bound(curves[i].begin(), curves[i].end(), step,
                         [](const IntermediateValue& v, std::int64_t s) { return v.step < s; });
    const IntermediateValue point{
        .step = step, .value = figure->second, .progress = value->progress, .at = value->at};
    if (at != curves[i].end() && at->step == step) {
      *at = point;
    } else {
      curves[i].insert(at, point);
    }
  }
  if (!UntoldMetric(spec, trial).empty()) return;
  trial.other_values.clear();
  for (const auto& curve : curves) trial.other_values.push_back(curve.back().value);
}

void TakeOtherMetrics(const StudySpec& spec, Trial& trial) {
  if (spec.other_metrics.empty()) return;
  for (const auto& [step, figures] : trial.extra) TakeOtherMetrics(spec, step, trial);
}

std::vector<std::string> FiguresNeeded(const StudySpec& spec) {
  std::vector<std::string> figures = spec.other_metrics;
  for (const Constraint& constraint : spec.constraints) {
    const bool known = std::ranges::find(figures, constraint.figure) != figures.end();
    if (!known && constraint.figure != spec.metric) figures.push_back(constraint.figure);
  }
  return figures;
}

void TakeConstraints(const StudySpec& spec, std::int64_t step, Trial& trial) {
  if (spec.constraints.empty() || trial.values.empty()) return;
  const bool newest = trial.values.back().step == step;
  if (!newest || trial.constraints->size() != spec.constraints.size()) {
    TakeConstraints(spec, trial);
    return;
  }
  const auto told = trial.extra.find(step);
  std::vector<double>& kept = trial.constraints.edit();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const Constraint& constraint = spec.constraints[i];
    if (constraint.figure == spec.metric) {
      kept[i] = constraint.Violation(ValueOf(trial));
    } else if (told != trial.extra.end()) {
      const auto figure = told->second.find(constraint.figure);
      if (figure != told->second.end()) kept[i] = constraint.Violation(figure->second);
    }
  }
}

void TakeConstraints(const StudySpec& spec, Trial& trial) {
  if (spec.constraints.empty() || trial.values.empty()) return;
  std::vector<double> kept;
  for (const Constraint& constraint : spec.constraints) {
    const double none = std::numeric_limits<double>::quiet_NaN();
    kept.push_back(constraint.Violation(NewestFigure(spec, constraint, trial).value_or(none)));
  }
  trial.constraints = std::move(kept);
}

std::string UntoldFigure(const StudySpec& spec, const Trial& trial) {
  for (const Constraint& constraint : spec.constraints) {
    if (!NewestFigure(spec, constraint, trial)) return constraint.figure;
  }
  return "";
}

bool Breaks(const StudySpec& spec, const Trial& trial) {
  const std::vector<double>& kept = *trial.constraints;
  if (KeepsTo(kept)) return false;
  if (spec.constraints.size() != kept.size() || Ended(trial.state)) return true;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i] <= 0) continue;
    if (NewestFigure(spec, spec.constraints[i], trial)) return true;
  }
  return false;
}

std::optional<bool> BreaksIfTold(const StudySpec& spec, const Trial& trial) {
  const std::vector<double>& kept = *trial.constraints;
  if (kept.empty()) return std::nullopt;
  if (Breaks(spec, trial)) return true;
  const bool untold = std::any_of(kept.begin(), kept.end(), [](double x) { return std::isnan(x); });
  return untold ? std::nullopt : std::optional(false);
}

std::string BrokenConstraints(const StudySpec& spec, const Trial& trial,
                              std::optional<double> value) {
  std::string broken;
  for (const Constraint& constraint : spec.constraints) {
    std::optional<double> figure = NewestFigure(spec, constraint, trial);
    if (value && constraint.figure == spec.metric) figure = value;
    if (!figure || constraint.Violation(*figure) <= 0) continue;
    absl::StrAppend(&broken, broken.empty() ? "" : ", ", ToText(constraint), " (it is ", *figure,
                    ")");
  }
  return broken;
}

std::string UntoldMetric(const StudySpec& spec, const Trial& trial) {
  const std::vector<std::vector<IntermediateValue>>& curves = *trial.other_curves;
  for (std::size_t i = 0; i < spec.other_metrics.size(); ++i) {
    if (i >= curves.size() || curves[i].empty()) return spec.other_metrics[i];
  }
  return "";
}

bool GoesUnasked(const Trial& trial) {
  if (trial.ranks->saving.asked() || trial.spans.empty()) return false;
  const Time since = trial.spans.back().from;
  const std::size_t told = trial.values.size();
  return told > 1 && trial.values[told - 1].at >= since && trial.values[told - 2].at >= since;
}

bool HasProvenInelastic(const TunerState& state, const Study& study) {
  const TrialTally& tally = state.TallyOf(study);
  return !study.spec.by_clients() && tally.any_at_work() && !tally.any_in_group();
}

std::string WhyNotGrowing(const Trial& trial) {
  const FailedJoins& failed = *trial.failed_joins;
  if (failed.in_a_row < kMaxFailedJoins) return "";
  return absl::StrCat("does not grow beyond ", failed.works_at,
                      failed.works_at == 1 ? " replica: " : " replicas: ", failed.in_a_row,
                      " in a row that were to join failed, the last one ", failed.reason);
}

}  // namespace espalier
