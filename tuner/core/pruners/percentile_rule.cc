#include "tuner/core/pruners/percentile_rule.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tuner/core/pruners/curve_reading.h"

namespace espalier {

namespace {

// Of values one of which counts.
double BestSoFar(Direction direction, const Curve& trial) {
  double best = trial.points.front().value;
  for (const IntermediateValue& point : trial.points) {
    if (Better(direction, point.value, best)) best = point.value;
  }
  return best;
}

}  // namespace

double Percentile(std::vector<double> values, double percent) {
  std::sort(values.begin(), values.end());
  const double place = static_cast<double>(values.size() - 1) * (percent / 100);
  const auto index = static_cast<std::size_t>(place);
  const double below = values[index];
  const double part = place - static_cast<double>(index);
  if (part == 0 || index + 1 == values.size()) return below;
  const double above = values[index + 1];
  if (below == above || std::isinf(below)) return below;
  if (std::isinf(above)) return above;
  // From the nearer end, so that half the way is the same from both.
  return part < 0.5 ? below + (above - below) * part : above - (above - below) * (1 - part);
}

std::optional<PercentileRule::Missed> PercentileRule::Check(const PrunerInput& input) const {
  if (!IsFirstOfInterval(input.trial, warmup_steps, interval)) return std::nullopt;
  const std::int64_t step = input.trial.points.back().step;
  std::int64_t complete = 0;
  std::int64_t reported = 0;
  std::vector<double> values;
  for (const Curve& other : input.others) {
    if (!other.complete) continue;
    ++complete;
    const IntermediateValue* point = PointAt(other, step);
    if (point == nullptr) continue;
    ++reported;
    if (Counts(input.direction, point->value)) values.push_back(point->value);
  }
  if (complete < startup_trials || reported < min_trials || values.empty()) return std::nullopt;
  const bool minimize = input.direction == Direction::kMinimize;
  Missed missed{.best = BestSoFar(input.direction, input.trial), .step = step};
  missed.trials = values.size();
  missed.bar = Percentile(std::move(values), minimize ? best_percent : 100 - best_percent);
  if (!Better(input.direction, missed.bar, missed.best)) return std::nullopt;
  return missed;
}

std::vector<PluginOption> CheckedStepsOptions() {
  return {{.name = "warmup_steps",
           .default_value = 0,
           .whole = true,
           .meaning = "a trial is judged from this step on, as in Optuna"},
          {.name = "interval",
           .default_value = 1,
           .least = 1,
           .whole = true,
           .meaning = "steps between checks, counted from warmup_steps"}};
}

std::vector<PluginOption> PercentileRuleOptions() {
  std::vector<PluginOption> options = CheckedStepsOptions();
  options.insert(options.begin(), {.name = "startup_trials",
                                   .default_value = 5,
                                   .whole = true,
                                   .meaning = "complete trials before any trial is pruned"});
  options.push_back(
      {.name = "min_trials",
       .default_value = 1,
       .least = 1,
       .whole = true,
       .meaning = "complete trials that must have reported a step for a verdict at it"});
  return options;
}

PercentileRule ReadPercentileRule(const OptionValues& options, double best_percent) {
  return {.best_percent = best_percent,
          .startup_trials = options.Whole("startup_trials"),
          .warmup_steps = options.Whole("warmup_steps"),
          .interval = options.Whole("interval"),
          .min_trials = options.Whole("min_trials")};
}

namespace {

class PercentilePruner final : public Pruner {
 public:
  PercentilePruner(const PercentileRule& rule, TextOfMissed text) : rule_(rule), text_(text) {}

  PruneVerdict Judge(const PrunerInput& input) const override {
    if (input.trial.points.empty()) return {};
    if (auto reason = NoValueCounts(input.direction, input.trial)) {
      return {PruneAction::kPrune, *std::move(reason)};
    }
    const auto missed = rule_.Check(input);
    if (!missed) return {};
    return {PruneAction::kPrune, text_(rule_, *missed)};
  }

 private:
  const PercentileRule rule_;
  const TextOfMissed text_;
};

}  // namespace

std::unique_ptr<Pruner> MakePercentilePruner(const PercentileRule& rule, TextOfMissed text) {
  return std::make_unique<PercentilePruner>(rule, text);
}

}  // namespace espalier
