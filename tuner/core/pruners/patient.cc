#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tuner/core/pruners/curve_reading.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier::pruners {

namespace {

struct Patience {
  std::int64_t reports = 5;
  double min_delta = 0;
};

// The best of values, NaN if none counts.
double BestOf(Direction direction, std::span<const IntermediateValue> points) {
  double best = std::numeric_limits<double>::quiet_NaN();
  for (const IntermediateValue& point : points) {
    if (Better(direction, point.value, best)) best = point.value;
  }
  return best;
}

// Lets another pruner judge a trial only while its newest reports, one more than `patience`, are
// all worse than the best before them, by more than min_delta. Without another one that alone ends
// it. Values that are not numbers are passed over. Verdicts are those of Optuna's PatientPruner
// around the same pruner, but for a trial that has had no number yet: it ends at once.
//
// What the other one says while the trial is improving is not heard: a rung of successive halving
// that is reached then does not come again.
class PatientPruner : public Pruner {
 public:
  PatientPruner(Patience patience, std::unique_ptr<Pruner> other)
      : patience_(patience), other_(std::move(other)) {}

  PruneVerdict Judge(const PrunerInput& input) const override {
    if (input.trial.points.empty()) return {};
    if (auto reason = NoValueCounts(input.direction, input.trial)) {
      return {PruneAction::kPrune, *std::move(reason)};
    }
    const auto points = input.trial.points;
    const auto count = static_cast<std::int64_t>(points.size());
    if (count - 1 <= patience_.reports) return {};
    const auto newest = static_cast<std::size_t>(patience_.reports + 1);
    const double before = BestOf(input.direction, points.first(points.size() - newest));
    const double since = BestOf(input.direction, points.last(newest));
    const bool minimize = input.direction == Direction::kMinimize;
    // False if one of them is NaN.
    const bool worse =
        minimize ? before + patience_.min_delta < since : before - patience_.min_delta > since;
    if (!worse) return {};
    const std::string why = absl::StrFormat("%.4g before its last %d reports, %.4g since", before,
                                            patience_.reports + 1, since);
    if (!other_) return {PruneAction::kPrune, why};
    PruneVerdict verdict = other_->Judge(input);
    if (verdict.action != PruneAction::kKeep) absl::StrAppend(&verdict.reason, " (", why, ")");
    return verdict;
  }

  bool steps_ascend() const override { return !other_ || other_->steps_ascend(); }
  bool pauses() const override { return other_ && other_->pauses(); }
  std::vector<std::size_t> MayGoOn(Direction direction, std::span<const Curve> curves,
                                   std::span<const std::size_t> paused) const override {
    return other_ ? other_->MayGoOn(direction, curves, paused)
                  : Pruner::MayGoOn(direction, curves, paused);
  }

 private:
  Patience patience_;
  std::unique_ptr<Pruner> other_;  // null: none
};

absl::StatusOr<std::unique_ptr<Pruner>> MakePatient(const OptionValues& options) {
  std::unique_ptr<Pruner> other;
  if (const std::string name = options.PluginName("pruner"); name != "none") {
    ESPALIER_ASSIGN_OR_RETURN(other, MakePruner(name, options.PluginOptions("pruner")));
  }
  return std::make_unique<PatientPruner>(
      Patience{.reports = options.Whole("patience"), .min_delta = options["min_delta"]},
      std::move(other));
}

}  // namespace

PluginRow<Pruner> PatientRow() {
  return {{.name = "patient",
           .summary = "lets another pruner end a trial only once it has stopped improving",
           .options = {{.name = "patience",
                        .default_value = 5,
                        .whole = true,
                        .meaning = "reports without improvement that are forgiven, as in Optuna"},
                       {.name = "min_delta",
                        .default_value = 0,
                        .meaning = "a value that is worse by up to this is no worse"},
                       {.name = "pruner",
                        .meaning = "the other one; none: that it does not improve ends a trial",
                        .plugin = "none"}}},
          MakePatient};
}

}  // namespace espalier::pruners
