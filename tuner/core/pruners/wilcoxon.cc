#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "tuner/core/pruners/curve_reading.h"
#include "tuner/core/pruners/pruner.h"
#include "tuner/core/pruners/signed_rank.h"

namespace espalier::pruners {

namespace {

struct WilcoxonSettings {
  double p_threshold = 0.1;
  std::int64_t startup_steps = 2;
};

bool AllFinite(const Curve& curve) {
  return std::ranges::all_of(curve.points,
                             [](const auto& point) { return std::isfinite(point.value); });
}

double MeanValue(const Curve& curve) {
  double sum = 0;
  for (const IntermediateValue& point : curve.points) sum += point.value;
  return sum / static_cast<double>(curve.points.size());
}

// The complete trial with the best final value; of equal ones the first. Null: there is none.
const Curve* BestComplete(const PrunerInput& input) {
  const Curve* best = nullptr;
  for (const Curve& other : input.others) {
    if (!other.complete || !Counts(input.direction, other.value)) continue;
    if (best == nullptr || Better(input.direction, other.value, best->value) ||
        (other.value == best->value && other.trial_number < best->trial_number)) {
      best = &other;
    }
  }
  return best;
}

// How much worse the trial is at each step that both have reported.
std::vector<double> Deficits(Direction direction, const Curve& trial, const Curve& best) {
  const double sign = direction == Direction::kMinimize ? 1 : -1;
  std::vector<double> deficits;
  auto other = best.points.begin();
  for (const IntermediateValue& point : trial.points) {
    while (other != best.points.end() && other->step < point.step) ++other;
    if (other == best.points.end()) break;
    if (other->step == point.step) deficits.push_back(sign * (point.value - other->value));
  }
  return deficits;
}

// For objectives that are a mean over instances (folds, seeds, problems): a step is the instance's
// number, in any order. A trial ends when the signed-rank test says, at p_threshold, that it is
// worse than the best complete trial on the instances that both have tried, unless its mean is no
// worse than that one's. Trials with values that are not finite are not compared. Verdicts are
// those of Optuna's WilcoxonPruner, but for a trial that has had no number yet: it ends at once.
class WilcoxonPruner : public Pruner {
 public:
  explicit WilcoxonPruner(WilcoxonSettings settings) : settings_(settings) {}

  bool steps_ascend() const override { return false; }

  PruneVerdict Judge(const PrunerInput& input) const override {
    if (input.trial.points.empty()) return {};
    if (auto reason = NoValueCounts(input.direction, input.trial)) {
      return {PruneAction::kPrune, *std::move(reason)};
    }
    const Curve* const best = BestComplete(input);
    if (best == nullptr || best->points.empty()) return {};
    if (!AllFinite(input.trial) || !AllFinite(*best)) return {};
    const std::vector<double> deficits = Deficits(input.direction, input.trial, *best);
    const std::int64_t needed = std::max<std::int64_t>(2, settings_.startup_steps);
    if (std::ssize(deficits) < needed) return {};
    const double probability = SignedRankProbability(deficits);
    const double own_mean = MeanValue(input.trial);
    const double best_mean = MeanValue(*best);
    if (probability >= settings_.p_threshold) return {};
    if (!Better(input.direction, best_mean, own_mean)) return {};
    return {PruneAction::kPrune,
            absl::StrFormat("on %d instances worse than trial %d, the best (p %.2g, needs %g; "
                            "mean %.4g, its %.4g)",
                            deficits.size(), best->trial_number, probability, settings_.p_threshold,
                            own_mean, best_mean)};
  }

 private:
  WilcoxonSettings settings_;
};

}  // namespace

PluginRow<Pruner> WilcoxonRow() {
  return {{.name = "wilcoxon",
           .summary = "ends a trial that a signed-rank test finds worse than the best; steps are "
                      "instances",
           .options = {{.name = "p_threshold",
                        .default_value = 0.1,
                        .most = 1,
                        .meaning = "chance below which the difference counts as no accident"},
                       {.name = "startup_steps",
                        .default_value = 2,
                        .whole = true,
                        .meaning = "instances that both must have before a verdict, at least 2"}}},
          [](const OptionValues& options) {
            return std::make_unique<WilcoxonPruner>(
                WilcoxonSettings{.p_threshold = options["p_threshold"],
                                 .startup_steps = options.Whole("startup_steps")});
          }};
}

}  // namespace espalier::pruners
