#include "tuner/core/pruners/rungs.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tuner/core/pruners/curve_reading.h"

namespace espalier {

std::optional<std::int64_t> Rungs::ReachedByNewest(const Curve& trial) const {
  if (trial.points.empty()) return std::nullopt;
  const std::int64_t step = trial.points.back().step;
  const std::int64_t before =
      trial.points.size() > 1 ? trial.points[trial.points.size() - 2].step : 0;
  std::optional<std::int64_t> reached;
  for (std::int64_t rung = min_steps; rung <= step; rung *= eta) {
    if (max_steps > 0 && rung >= max_steps) break;
    if (rung > before) reached = rung;
    if (rung > step / eta) break;  // the next one is beyond, and might overflow
  }
  return reached;
}

double CostOf(Direction direction, double value) {
  if (!Counts(direction, value)) return HUGE_VAL;
  return direction == Direction::kMinimize ? value : -value;
}

std::vector<double> CostsAt(std::int64_t rung, Direction direction, std::span<const Curve> curves) {
  std::vector<double> costs;
  for (const Curve& curve : curves) {
    const IntermediateValue* point = FirstPointFrom(curve, rung);
    if (point != nullptr) costs.push_back(CostOf(direction, point->value));
  }
  return costs;
}

std::string NoValueAt(std::int64_t rung, const PrunerInput& input) {
  const IntermediateValue& last = input.trial.points.back();
  if (Counts(input.direction, last.value)) return "";
  return absl::StrFormat("%.4g at step %d, where the rung of step %d needs a number", last.value,
                         last.step, rung);
}

PruneVerdict StopBelowTop(const Rungs& rungs, const PrunerInput& input,
                          std::span<const Curve> others) {
  const std::optional<std::int64_t> rung = rungs.ReachedByNewest(input.trial);
  if (!rung) return {};
  if (std::string reason = NoValueAt(*rung, input); !reason.empty()) {
    return {PruneAction::kPrune, std::move(reason)};
  }
  std::vector<double> costs = CostsAt(*rung, input.direction, others);
  const auto reached = static_cast<std::int64_t>(costs.size()) + 1;
  if (reached < rungs.eta) return {};
  const IntermediateValue& last = input.trial.points.back();
  const double own = CostOf(input.direction, last.value);
  costs.push_back(own);
  const auto worst_kept = costs.begin() + static_cast<std::ptrdiff_t>(reached / rungs.eta - 1);
  std::nth_element(costs.begin(), worst_kept, costs.end());
  if (own <= *worst_kept) return {};
  const double needed = input.direction == Direction::kMinimize ? *worst_kept : -*worst_kept;
  return {
      PruneAction::kPrune,
      absl::StrFormat("%.4g at step %d is not among the best 1/%d of %d trials there (needs %.4g)",
                      last.value, last.step, rungs.eta, reached, needed)};
}

std::vector<PluginOption> RungOptions() {
  return {
      {.name = "min_steps", .default_value = 1, .least = 1, .whole = true, .meaning = "first rung"},
      {.name = "eta",
       .default_value = 3,
       .least = 2,
       .whole = true,
       .meaning = "factor between rungs; the best 1/eta of the trials at a rung go on"},
      {.name = "max_steps",
       .default_value = 0,
       .whole = true,
       .meaning = "steps of a full trial, where there is no rung; 0: unknown"}};
}

absl::StatusOr<Rungs> ReadRungs(const OptionValues& options) {
  const Rungs rungs = {.min_steps = options.Whole("min_steps"),
                       .eta = options.Whole("eta"),
                       .max_steps = options.Whole("max_steps")};
  if (rungs.max_steps == 0 || rungs.max_steps >= rungs.min_steps) return rungs;
  return OptionNeeds("max_steps", absl::StrCat("0 or at least min_steps (", rungs.min_steps, ")"),
                     options["max_steps"]);
}

}  // namespace espalier
