#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_format.h"
#include "tuner/core/pruners/curve_reading.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier::pruners {

namespace {

struct MedianSettings {
  std::int64_t startup_trials;
  std::int64_t warmup_steps;
  std::int64_t interval;
};

// The median; of an even number of values the mean of the two in the middle. Requires at least one.
double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  const double below = *std::max_element(values.begin(), middle);
  return below == *middle ? below : below + (*middle - below) / 2;
}

// Of values one of which counts.
double BestSoFar(Direction direction, const Curve& trial) {
  double best = trial.points.front().value;
  for (const IntermediateValue& point : trial.points) {
    if (Better(direction, point.value, best)) best = point.value;
  }
  return best;
}

// The median stopping rule (Golovin et al., Google Vizier, KDD 2017): a trial ends when its best
// value so far is worse than the median of what complete trials had at the same step. Values that
// are not numbers are passed over. Verdicts are those of Optuna's MedianPruner, but for a trial
// that has had no number yet: it ends at once, and not only after the first trials and steps.
class MedianPruner : public Pruner {
 public:
  explicit MedianPruner(MedianSettings settings) : settings_(settings) {}

  PruneVerdict Judge(const PrunerInput& input) const override {
    if (input.trial.points.empty()) return {};
    if (auto reason = NoValueCounts(input.direction, input.trial)) {
      return {PruneAction::kPrune, *std::move(reason)};
    }
    if (!IsDue(input.trial)) return {};
    const std::int64_t step = input.trial.points.back().step;
    std::int64_t complete = 0;
    std::vector<double> values;
    for (const Curve& other : input.others) {
      if (!other.complete) continue;
      ++complete;
      const IntermediateValue* point = PointAt(other, step);
      if (point != nullptr && Counts(input.direction, point->value)) values.push_back(point->value);
    }
    if (complete < settings_.startup_trials || values.empty()) return {};
    const std::size_t count = values.size();
    const double median = Median(std::move(values));
    const double best = BestSoFar(input.direction, input.trial);
    if (!Better(input.direction, median, best)) return {};
    return {PruneAction::kPrune,
            absl::StrFormat("%.4g, its best up to step %d, is worse than the median %.4g of "
                            "%d complete trials there",
                            best, step, median, count)};
  }

 private:
  // Past the warm-up, and the first value in its interval.
  bool IsDue(const Curve& trial) const {
    const std::int64_t warmup = settings_.warmup_steps;
    if (trial.points.back().step < warmup) return false;
    if (trial.points.size() == 1) return true;
    const std::int64_t past = trial.points.back().step - warmup;
    const std::int64_t before = trial.points[trial.points.size() - 2].step;
    return before < warmup + past / settings_.interval * settings_.interval;
  }

  MedianSettings settings_;
};

}  // namespace

PluginRow<Pruner> MedianRow() {
  return {{.name = "median",
           .summary = "ends a trial whose best value is worse than the median at the same step",
           .options = {{.name = "startup_trials",
                        .default_value = 5,
                        .whole = true,
                        .meaning = "complete trials before any trial is pruned"},
                       {.name = "warmup_steps",
                        .default_value = 0,
                        .whole = true,
                        .meaning = "a trial is judged from this step on, as in Optuna"},
                       {.name = "interval",
                        .default_value = 1,
                        .least = 1,
                        .whole = true,
                        .meaning = "steps between checks, counted from warmup_steps"}}},
          [](const OptionValues& options) {
            return std::make_unique<MedianPruner>(
                MedianSettings{.startup_trials = options.Whole("startup_trials"),
                               .warmup_steps = options.Whole("warmup_steps"),
                               .interval = options.Whole("interval")});
          }};
}

}  // namespace espalier::pruners
