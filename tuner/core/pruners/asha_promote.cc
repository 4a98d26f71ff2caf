#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "tuner/core/pruners/curve_reading.h"
#include "tuner/core/pruners/pruner.h"
#include "tuner/core/pruners/rungs.h"

namespace espalier::pruners {

namespace {

// Asynchronous successive halving (Li et al., MLSys 2020) in its promoting form: a trial that
// reaches a rung (rungs.h) and is not among the best 1/eta there, at least one, is paused, not
// ended. It keeps its checkpoint, and goes on when it comes into the best 1/eta as more trials
// arrive and slots are free, before new configurations are started. A trial that is still paused
// when nothing else is left to run, in a queue each time that it is empty, is ended by the core; so
// is at once a program that cannot be paused. What is not a number at a rung ends a trial.
//
// Whether a paused trial may go on follows from the curves alone: nothing has to be remembered.
class AshaPromote : public Pruner {
 public:
  explicit AshaPromote(Rungs rungs) : rungs_(rungs) {}

  PruneVerdict Judge(const PrunerInput& input) const override {
    if (input.trial.points.empty()) return {};
    if (auto reason = NoValueCounts(input.direction, input.trial)) {
      return {PruneAction::kPrune, *std::move(reason)};
    }
    const std::optional<std::int64_t> rung = rungs_.ReachedByNewest(input.trial);
    if (!rung) return {};
    if (std::string reason = NoValueAt(*rung, input); !reason.empty()) {
      return {PruneAction::kPrune, std::move(reason)};
    }
    std::vector<double> costs = CostsAt(*rung, input.direction, input.others);
    const IntermediateValue& last = input.trial.points.back();
    const double own = CostOf(input.direction, last.value);
    costs.push_back(own);
    const std::size_t reached = costs.size();
    const double bar = Bar(std::move(costs));
    if (own <= bar) return {};
    return {PruneAction::kPause,
            absl::StrFormat(
                "%.4g at step %d waits to come among the best 1/%d of %d trials there (needs %.4g)",
                last.value, last.step, rungs_.eta, reached,
                input.direction == Direction::kMinimize ? bar : -bar)};
  }

  bool pauses() const override { return true; }

  std::vector<std::size_t> MayGoOn(Direction direction, std::span<const Curve> curves,
                                   std::span<const std::size_t> paused) const override {
    std::map<std::int64_t, double> bars;
    std::vector<std::size_t> result;
    for (const std::size_t i : paused) {
      // One that was paused for another reason, between rungs or before its first.
      const std::optional<std::int64_t> rung = rungs_.ReachedByNewest(curves[i]);
      if (rung && !bars.contains(*rung)) {
        bars[*rung] = Bar(CostsAt(*rung, direction, curves));
      }
      if (!rung || CostOf(direction, curves[i].points.back().value) <= bars[*rung]) {
        result.push_back(i);
      }
    }
    return result;
  }

 private:
  // The cost of the last of the best 1/eta.
  double Bar(std::vector<double> costs) const {
    const auto eta = static_cast<std::size_t>(rungs_.eta);
    const std::size_t kept = std::max<std::size_t>(1, costs.size() / eta);
    const auto worst_kept = costs.begin() + static_cast<std::ptrdiff_t>(kept - 1);
    std::nth_element(costs.begin(), worst_kept, costs.end());
    return *worst_kept;
  }

  Rungs rungs_;
};

}  // namespace

PluginRow<Pruner> AshaPromoteRow() {
  return {{.name = "asha_promote",
           .summary = "pauses a trial at a rung until it is among the best 1/eta there",
           .options = RungOptions()},
          [](const OptionValues& options) -> absl::StatusOr<std::unique_ptr<Pruner>> {
            ESPALIER_ASSIGN_OR_RETURN(const Rungs rungs, ReadRungs(options));
            return std::make_unique<AshaPromote>(rungs);
          }};
}

}  // namespace espalier::pruners
