#include "tuner/core/promise/promise.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "tuner/core/pruners/curve_reading.h"
#include "tuner/core/pruners/promise_options.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier::pruners {

namespace {

constexpr std::size_t kDiverged = 3;        // values in a row that are not numbers
constexpr double kJudgedAgain = 17.0 / 16;  // a step so many times the last one judged
constexpr double kUsualPool = 8;            // slots and trials at which `risk` is what it says
constexpr double kUsualTrials = 128;
constexpr double kMostBySize = 2;  // that fewer change it by
constexpr double kMostByCost = 3;  // that what a trial still costs changes the bar by, at most

struct PromiseSettings {
  double threshold;
  double risk;
  double cost_weight;
  std::int64_t min_steps;
  std::int64_t min_trials;
  std::int64_t best_k;
};

bool IsDue(const Curve& trial) {
  if (trial.points.size() == 1) return true;
  const auto period = [](std::int64_t step) {
    const auto at = static_cast<double>(std::max<std::int64_t>(step, 1));
    return std::floor(std::log(at) / std::log(kJudgedAgain));
  };
  return period(trial.points.back().step) > period(trial.points[trial.points.size() - 2].step);
}

// To its last step, as fast as it was in the later half of its curve. 0: unknown.
double SecondsLeft(const Curve& trial, std::int64_t max_step) {
  if (trial.complete || trial.points.size() < 3) return 0;
  const IntermediateValue& from = trial.points[trial.points.size() / 2];
  const IntermediateValue& last = trial.points.back();
  const auto steps = static_cast<double>(last.step) - static_cast<double>(from.step);
  const auto left = static_cast<double>(max_step) - static_cast<double>(last.step);
  return std::max(0.0, SecondsBetween(from.at, last.at) / steps * left);
}

// What live trials that have no more of a chance than `own` have together.
double TogetherUpTo(double own, std::span<const Curve> curves, std::span<const double> promise) {
  double sum = 0;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    if (!curves[i].ended && promise[i] <= own) sum += promise[i];
  }
  return sum;
}

// Ends a trial when the promise model (tuner/core/promise) leaves it little chance of ending among
// the study's best k: its promise is below `threshold`, and it and all live trials that have no
// more have less than `risk` of the k best together. The second keeps many equal trials from being
// ended while none stands out, and bounds what is risked at a time however many trials there are.
// Curves are compared where they are expected to end, so a slow starter that catches up is kept
// where the study's curves show that such trials do.
//
// The bars move. `risk` is meant for 128 trials of which each holds an eighth of the pool at the
// least; it falls with the root of the number of trials, each of which is a risk, and grows with
// the root of that share, up to twice as much: in a large pool a trial takes little from others.
// With c times the time left to its last step that the most promising trial has, a trial needs
// c^cost_weight times as much of a chance, a third to three times: a slow trial holds up the
// study's end.
//
// Never ended are the most promising trial, one whose value is the best that any trial has had up
// to that step, and any trial while fewer than min_trials have reported. A trial is judged at its
// first report, and again each time that its step has grown by a sixteenth. Values that are not
// numbers are passed over, until three in a row end it.
//
// With several objectives a trial's promise is the chance that it ends on their Pareto front, and k
// is 1: the bar is the chance to lose one trial of the front, however many that has. Never ended is
// then a trial that no other one dominates by the values of a step up to that one.
class PromisePruner : public Pruner {
 public:
  explicit PromisePruner(PromiseSettings settings) : settings_(settings) {}

  PruneVerdict Judge(const PrunerInput& input) const override {
    if (input.trial.points.empty()) return {};
    if (auto reason = NoValueCounts(input.direction, input.trial)) {
      return {PruneAction::kPrune, *std::move(reason)};
    }
    const IntermediateValue& last = input.trial.points.back();
    if (!std::isfinite(last.value)) return OfNoNumber(input.trial.points);
    for (const std::vector<IntermediateValue>& points : input.trial.others) {
      if (!points.empty() && !std::isfinite(points.back().value)) return OfNoNumber(points);
    }
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
    options.other_directions.assign(input.other_directions.begin(), input.other_directions.end());
    const std::vector<double> promise = Promise(input.direction, curves, options);
    const double own = promise.back();
    const auto leader = std::max_element(promise.begin(), promise.end()) - promise.begin();
    if (own >= promise[static_cast<std::size_t>(leader)]) return {};
    const double together = TogetherUpTo(own, curves, promise);
    const double lenience = Lenience(input, curves[static_cast<std::size_t>(leader)]);
    const double alone_needed = settings_.threshold / lenience;
    const bool of_front = !options.other_directions.empty();
    // A front has many trials, most of which have ended: what counts is to lose one of it.
    const double best = of_front ? 1 : static_cast<double>(options.best_k);
    const double together_needed = settings_.risk * BySize(input) * best / lenience;
    if (own >= alone_needed || together >= together_needed) return {};
    if (of_front) {
      return {PruneAction::kPrune,
              absl::StrFormat("%s at step %d has %.2g %% chance to end on the Pareto front (needs "
                              "%.2g %%), with all that have less %.2g %% (need %.2g %%)",
                              NewestValues(input.trial), last.step, 100 * own, 100 * alone_needed,
                              100 * together, 100 * together_needed)};
    }
    return {PruneAction::kPrune,
            absl::StrFormat("%.4g at step %d has %.2g %% chance to end among the best %d "
                            "(needs %.2g %%), with all that have less %.2g %% (need %.2g %%)",
                            last.value, last.step, 100 * own, options.best_k, 100 * alone_needed,
                            100 * together, 100 * together_needed)};
  }

  bool takes_objectives() const override { return true; }

 private:
  static PruneVerdict OfNoNumber(std::span<const IntermediateValue> points) {
    const auto latest = points.last(std::min(kDiverged, points.size()));
    const auto finite = [](const auto& point) { return std::isfinite(point.value); };
    if (latest.size() < kDiverged || std::ranges::any_of(latest, finite)) return {};
    return {PruneAction::kPrune,
            absl::StrFormat("%.4g at step %d, and the two values before it were no numbers either",
                            latest.back().value, latest.back().step)};
  }

  bool EnoughReported(const PrunerInput& input) const {
    const auto reported = std::count_if(input.others.begin(), input.others.end(),
                                        [](const Curve& other) { return !other.points.empty(); });
    return reported + 1 >= settings_.min_trials;
  }

  // Each verdict is a risk, and there are more of them among many trials.
  static double BySize(const PrunerInput& input) {
    const auto trials = static_cast<double>(input.others.size() + 1);
    return std::min(kMostBySize, std::sqrt(kUsualPool * input.pool_share * kUsualTrials / trials));
  }

  // By how much less of a chance than its options say a trial may have.
  double Lenience(const PrunerInput& input, const Curve& leader) const {
    const double own_s = SecondsLeft(input.trial, input.max_step);
    const double leader_s = SecondsLeft(leader, input.max_step);
    if (own_s <= 0 || leader_s <= 0) return 1;
    const double cheaper = std::pow(leader_s / own_s, settings_.cost_weight);
    return std::clamp(cheaper, 1 / kMostByCost, kMostByCost);
  }

  // No trial has had a better value up to the step of its newest one.
  static bool IsBestSoFar(const PrunerInput& input) {
    const IntermediateValue& last = input.trial.points.back();
    if (!input.other_directions.empty()) return IsUndominatedSoFar(input, last.step);
    for (const Curve& other : input.others) {
      for (const IntermediateValue& point : other.points) {
        if (point.step > last.step) break;
        if (!Better(input.direction, last.value, point.value)) return false;
      }
    }
    return true;
  }

  // All that the trial has told of the step; none where it lacks one of the objectives.
  static std::optional<std::vector<double>> ValuesAt(const Curve& curve, std::int64_t step) {
    const IntermediateValue* first = PointAt(curve, step);
    if (first == nullptr) return std::nullopt;
    std::vector<double> values{first->value};
    for (const std::vector<IntermediateValue>& points : curve.others) {
      const IntermediateValue* other = PointAt(Curve{.points = points}, step);
      if (other == nullptr) return std::nullopt;
      values.push_back(other->value);
    }
    return values;
  }

  // No worse in any objective: what dominates, and what is equal.
  static bool NoWorse(const PrunerInput& input, const std::vector<double>& a,
                      const std::vector<double>& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t k = 0; k < a.size(); ++k) {
      const Direction direction = k == 0 ? input.direction : input.other_directions[k - 1];
      if (Better(direction, b[k], a[k])) return false;
    }
    return true;
  }

  static bool IsUndominatedSoFar(const PrunerInput& input, std::int64_t step) {
    const std::optional<std::vector<double>> own = ValuesAt(input.trial, step);
    if (!own) return false;
    for (const Curve& other : input.others) {
      for (const IntermediateValue& point : other.points) {
        if (point.step > step) break;
        if (Better(input.direction, own->front(), point.value)) continue;
        const auto theirs = ValuesAt(other, point.step);
        if (theirs && NoWorse(input, *theirs, *own)) return false;
      }
    }
    return true;
  }

  static std::string NewestValues(const Curve& trial) {
    std::string text = absl::StrFormat("%.4g", trial.points.back().value);
    for (const std::vector<IntermediateValue>& points : trial.others) {
      if (!points.empty()) absl::StrAppendFormat(&text, ", %.4g", points.back().value);
    }
    return text;
  }

  PromiseSettings settings_;
};

}  // namespace

PluginRow<Pruner> PromiseRow() {
  return {{.name = "promise",
           .summary = "ends a trial that has little chance to end among the best k",
           .options = PromisePrunerOptions()},
          [](const OptionValues& options) {
            return std::make_unique<PromisePruner>(
                PromiseSettings{.threshold = options["threshold"],
                                .risk = options["risk"],
                                .cost_weight = options["cost_weight"],
                                .min_steps = options.Whole("min_steps"),
                                .min_trials = options.Whole("min_trials"),
                                .best_k = options.Whole("best_k")});
          }};
}

}  // namespace espalier::pruners
