#include "tuner/core/pruners/promise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tuner/base/status.h"
#include "tuner/core/promise/promise.h"
#include "tuner/core/pruners/curve_reading.h"

namespace espalier {

namespace {

constexpr double kJudgedAgain = 17.0 / 16;  // a step so many times the last one judged

struct Settings {
  double threshold = 0.2;
  double share = 0.25;
  std::int64_t min_steps = 1;
  std::int64_t min_trials = 3;
  std::int64_t best_k = 0;
};

bool IsDue(const Curve& trial) {
  if (trial.points.size() == 1) return true;
  const auto period = [](std::int64_t step) {
    const auto at = static_cast<double>(std::max<std::int64_t>(step, 1));
    return std::floor(std::log(at) / std::log(kJudgedAgain));
  };
  return period(trial.points.back().step) > period(trial.points[trial.points.size() - 2].step);
}

class PromisePruner : public Pruner {
 public:
  explicit PromisePruner(Settings settings) : settings_(settings) {}

  PruneVerdict Judge(const PrunerInput& input) const override {
    if (input.trial.points.empty()) return {};
    if (auto reason = NotANumber(input.trial)) return {true, *std::move(reason)};
    const IntermediateValue& last = input.trial.points.back();
    if (last.step < settings_.min_steps || !IsDue(input.trial)) return {};
    if (!EnoughReported(input) || IsBestSoFar(input)) return {};
    // In order of trials, so that rounding does not depend on the order of `others`.
    std::vector<Curve> curves(input.others.begin(), input.others.end());
    std::sort(curves.begin(), curves.end(),
              [](const Curve& a, const Curve& b) { return a.trial_number < b.trial_number; });
    curves.push_back(input.trial);
    PromiseOptions options;
    options.best_k = settings_.best_k > 0 ? static_cast<int>(settings_.best_k) : input.best_k;
    options.max_step = input.max_step;
    const std::vector<double> promise = Promise(input.direction, curves, options);
    const double own = promise.back();
    const double most = *std::max_element(promise.begin(), promise.end());
    if (own >= settings_.threshold || own >= settings_.share * most) return {};
    return {true, absl::StrFormat("%.4g at step %d has %.2g %% chance to end among the best %d "
                                  "(needs %.2g %%)",
                                  last.value, last.step, 100 * own, options.best_k,
                                  100 * std::min(settings_.threshold, settings_.share * most))};
  }

 private:
  bool EnoughReported(const PrunerInput& input) const {
    const auto reported = std::count_if(input.others.begin(), input.others.end(),
                                        [](const Curve& other) { return !other.points.empty(); });
    return reported + 1 >= settings_.min_trials;
  }

  // No trial has had a better value up to the step of its newest one.
  static bool IsBestSoFar(const PrunerInput& input) {
    const IntermediateValue& last = input.trial.points.back();
    for (const Curve& other : input.others) {
      for (const IntermediateValue& point : other.points) {
        if (point.step > last.step) break;
        if (!Better(input.direction, last.value, point.value)) return false;
      }
    }
    return true;
  }

  Settings settings_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Pruner>> MakePromise(const Options& options) {
  Settings settings;
  const std::array counts = {CountOption{"min_steps", &settings.min_steps, 1},
                             CountOption{"min_trials", &settings.min_trials, 2},
                             CountOption{"best_k", &settings.best_k, 0}};
  const std::array shares = {ShareOption{"threshold", &settings.threshold},
                             ShareOption{"share", &settings.share}};
  ESPALIER_RETURN_IF_ERROR(ReadOptions("promise", options, counts, shares));
  if (settings.best_k > kMostBestK) {
    return absl::InvalidArgumentError(
        absl::StrCat("pruner \"promise\" option \"best_k\": needs at most ", kMostBestK, ", got ",
                     settings.best_k));
  }
  return std::make_unique<PromisePruner>(settings);
}

}  // namespace espalier
