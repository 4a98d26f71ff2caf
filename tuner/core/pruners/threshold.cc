#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tuner/core/pruners/curve_reading.h"
#include "tuner/core/pruners/percentile_rule.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier::pruners {

namespace {

struct Bounds {
  std::optional<double> lower;
  std::optional<double> upper;
  std::int64_t warmup_steps = 0;
  std::int64_t interval = 1;
};

// Ends a trial whose newest value is out of bounds or not a number, whatever it had before and
// whatever the others have: for a loss that has exploded. Verdicts are those of Optuna's
// ThresholdPruner, but for a trial that has had no number yet: it ends in the warm-up too.
class ThresholdPruner : public Pruner {
 public:
  explicit ThresholdPruner(Bounds bounds) : bounds_(bounds) {}

  PruneVerdict Judge(const PrunerInput& input) const override {
    if (input.trial.points.empty()) return {};
    if (auto reason = NoValueCounts(input.direction, input.trial)) {
      return {PruneAction::kPrune, *std::move(reason)};
    }
    if (!IsFirstOfInterval(input.trial, bounds_.warmup_steps, bounds_.interval)) return {};
    const IntermediateValue& last = input.trial.points.back();
    const std::string what = absl::StrFormat("%.4g at step %d", last.value, last.step);
    if (std::isnan(last.value)) return {PruneAction::kPrune, absl::StrCat(what, " is no number")};
    if (bounds_.lower && last.value < *bounds_.lower) {
      return {PruneAction::kPrune, absl::StrFormat("%s is below %g", what, *bounds_.lower)};
    }
    if (bounds_.upper && last.value > *bounds_.upper) {
      return {PruneAction::kPrune, absl::StrFormat("%s is above %g", what, *bounds_.upper)};
    }
    return {};
  }

 private:
  Bounds bounds_;
};

absl::StatusOr<std::unique_ptr<Pruner>> MakeThreshold(const OptionValues& options) {
  const Bounds bounds{.lower = options.Given("lower"),
                      .upper = options.Given("upper"),
                      .warmup_steps = options.Whole("warmup_steps"),
                      .interval = options.Whole("interval")};
  if (!bounds.lower && !bounds.upper) {
    return absl::InvalidArgumentError("needs option \"lower\", \"upper\" or both");
  }
  if (bounds.lower && bounds.upper && *bounds.lower > *bounds.upper) {
    return OptionNeeds("lower", absl::StrCat("at most upper (", *bounds.upper, ")"), *bounds.lower);
  }
  return std::make_unique<ThresholdPruner>(bounds);
}

}  // namespace

PluginRow<Pruner> ThresholdRow() {
  std::vector<PluginOption> options = {{.name = "lower",
                                        .least = -std::numeric_limits<double>::infinity(),
                                        .meaning = "a value below this ends the trial",
                                        .optional = true},
                                       {.name = "upper",
                                        .least = -std::numeric_limits<double>::infinity(),
                                        .meaning = "a value above this ends the trial",
                                        .optional = true}};
  for (PluginOption& option : CheckedStepsOptions()) options.push_back(option);
  return {{.name = "threshold",
           .summary = "ends a trial whose newest value is out of bounds or not a number",
           .options = std::move(options)},
          MakeThreshold};
}

}  // namespace espalier::pruners
