#include "tuner/cli/report/sweep.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "tuner/cli/views/study_text.h"

namespace espalier::report {
namespace {

// Batch sizes sort by number, names by letter.
using GroupKey = std::tuple<std::string, double, std::string>;

std::optional<GroupKey> KeyOf(const v1::Trial& trial) {
  const v1::Parameter* rule = FindParameter(trial, "scaling_rule");
  const v1::Parameter* batch = FindParameter(trial, "batch_size");
  if (rule == nullptr && batch == nullptr) return std::nullopt;
  const std::string size = batch == nullptr ? "" : DisplayParameter(*batch);
  return GroupKey{rule == nullptr ? "" : DisplayParameter(*rule),
                  std::strtod(size.c_str(), nullptr), size};
}

std::optional<Reached> WhenReached(const v1::Study& study, const v1::Trial& trial, double target,
                                   double now) {
  for (const v1::IntermediateValue& value : trial.values()) {
    if (!std::isfinite(value.value()) || BetterFor(study, target, value.value())) continue;
    Reached reached;
    reached.step = value.step();
    reached.trial_number = trial.number();
    for (const v1::SlotSpan& span : trial.spans()) {
      const double to = std::min(value.at(), span.to() > 0 ? span.to() : now);
      const double held = span.slots_size() > 0 ? std::max(0.0, to - span.from()) : 0;
      reached.seconds += held;
      reached.slot_seconds += held * span.slots_size();
    }
    return reached;
  }
  return std::nullopt;
}

// The best number reported by a trial of the group; NaN if there is none.
double BestReported(const v1::Study& study, const std::vector<const v1::Trial*>& trials) {
  double best = std::nan("");
  for (const v1::Trial* trial : trials) {
    for (const v1::IntermediateValue& value : trial->values()) {
      if (std::isfinite(value.value()) &&
          (std::isnan(best) || BetterFor(study, value.value(), best))) {
        best = value.value();
      }
    }
  }
  return best;
}

SweepGroup MakeGroup(const v1::Study& study, const GroupKey& key,
                     const std::vector<const v1::Trial*>& trials, std::optional<double> target,
                     double now) {
  SweepGroup group;
  std::tie(group.rule, group.batch_size, group.batch) = key;
  for (const v1::Trial* trial : trials) {
    ++group.trials;
    group.pruned += trial->state() == v1::TRIAL_PRUNED;
    group.failed += trial->state() == v1::TRIAL_FAIL;
    if (trial->has_value()) group.values.push_back(trial->value());
    if (!target) continue;
    if (auto reached = WhenReached(study, *trial, *target, now)) group.reached.push_back(*reached);
  }
  std::sort(group.values.begin(), group.values.end(),
            [&](double a, double b) { return BetterFor(study, a, b); });
  std::sort(group.reached.begin(), group.reached.end(),
            [](const Reached& a, const Reached& b) { return a.seconds < b.seconds; });
  return group;
}

}  // namespace

Sweep SweepOf(const v1::StudyDetails& details, std::optional<double> target, double now) {
  const v1::Study& study = details.study();
  std::map<GroupKey, std::vector<const v1::Trial*>> trials;
  for (const v1::Trial& trial : details.trials()) {
    if (const auto key = KeyOf(trial)) trials[*key].push_back(&trial);
  }
  Sweep sweep;
  sweep.target = target ? target : study.has_target() ? std::optional(study.target()) : target;
  sweep.target_given = sweep.target.has_value();
  if (!sweep.target_given) {
    for (const auto& [key, of_group] : trials) {
      const double best = BestReported(study, of_group);
      if (std::isnan(best)) continue;
      if (!sweep.target || BetterFor(study, *sweep.target, best)) sweep.target = best;
    }
  }
  for (const auto& [key, of_group] : trials) {
    sweep.groups.push_back(MakeGroup(study, key, of_group, sweep.target, now));
  }
  return sweep;
}

}  // namespace espalier::report
