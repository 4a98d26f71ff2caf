#include "tuner/core/pruners/asha_promote.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <vector>

#include "absl/strings/str_format.h"
#include "tuner/base/status.h"
#include "tuner/core/pruners/curve_reading.h"
#include "tuner/core/pruners/rungs.h"

namespace espalier {

namespace {

class AshaPromote : public Pruner {
 public:
  explicit AshaPromote(Rungs rungs) : rungs_(rungs) {}

  PruneVerdict Judge(const PrunerInput& input) const override {
    if (input.trial.points.empty()) return {};
    if (auto reason = NotANumber(input.trial)) return {true, *std::move(reason)};
    const std::optional<std::int64_t> rung = rungs_.ReachedByNewest(input.trial);
    if (!rung) return {};
    std::vector<double> costs = CostsAt(*rung, input.direction, input.others);
    const IntermediateValue& last = input.trial.points.back();
    const double own = CostOf(input.direction, last.value);
    costs.push_back(own);
    const std::size_t reached = costs.size();
    const double bar = Bar(std::move(costs));
    if (own <= bar) return {};
    return {.prune = false,
            .reason = absl::StrFormat(
                "%.4g at step %d waits to come among the best 1/%d of %d trials there (needs %.4g)",
                last.value, last.step, rungs_.eta, reached,
                input.direction == Direction::kMinimize ? bar : -bar),
            .pause = true};
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

absl::StatusOr<std::unique_ptr<Pruner>> MakeAshaPromote(const Options& options) {
  Rungs rungs;
  const std::array known = {CountOption{"min_steps", &rungs.min_steps, 1},
                            CountOption{"eta", &rungs.eta, 2},
                            CountOption{"max_steps", &rungs.max_steps, 0}};
  ESPALIER_RETURN_IF_ERROR(ReadOptions("asha_promote", options, known));
  ESPALIER_RETURN_IF_ERROR(CheckEnd("asha_promote", rungs));
  return std::make_unique<AshaPromote>(rungs);
}

}  // namespace espalier
