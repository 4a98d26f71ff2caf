#include "tuner/core/pruners/asha.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tuner/base/status.h"
#include "tuner/core/pruners/curve_reading.h"

namespace espalier {

namespace {

struct Settings {
  std::int64_t min_steps = 1;
  std::int64_t eta = 3;
  std::int64_t max_steps = 0;
};

class Asha : public Pruner {
 public:
  explicit Asha(Settings settings) : settings_(settings) {}

  PruneVerdict Judge(const PrunerInput& input) const override {
    if (input.trial.points.empty()) return {};
    if (auto reason = NotANumber(input.trial)) return {true, *std::move(reason)};
    const std::optional<std::int64_t> rung = RungReached(input.trial);
    if (!rung) return {};
    // Values as costs, so that less is better; what is not a number comes last.
    const auto cost = [&](double value) {
      if (std::isnan(value)) return HUGE_VAL;
      return input.direction == Direction::kMinimize ? value : -value;
    };
    std::vector<double> costs;
    for (const Curve& other : input.others) {
      const IntermediateValue* point = FirstPointFrom(other, *rung);
      if (point != nullptr) costs.push_back(cost(point->value));
    }
    const auto reached = static_cast<std::int64_t>(costs.size()) + 1;
    if (reached < settings_.eta) return {};
    const IntermediateValue& last = input.trial.points.back();
    costs.push_back(cost(last.value));
    const auto kept = static_cast<std::ptrdiff_t>(reached / settings_.eta);
    const auto worst_kept = costs.begin() + (kept - 1);
    std::nth_element(costs.begin(), worst_kept, costs.end());
    if (cost(last.value) <= *worst_kept) return {};
    const double needed = input.direction == Direction::kMinimize ? *worst_kept : -*worst_kept;
    return {true, absl::StrFormat(
                      "%.4g at step %d is not among the best 1/%d of %d trials there (needs %.4g)",
                      last.value, last.step, settings_.eta, reached, needed)};
  }

 private:
  // The highest rung that the newest point is the first to reach.
  std::optional<std::int64_t> RungReached(const Curve& trial) const {
    const std::int64_t step = trial.points.back().step;
    const std::int64_t before =
        trial.points.size() > 1 ? trial.points[trial.points.size() - 2].step : 0;
    std::optional<std::int64_t> reached;
    for (std::int64_t rung = settings_.min_steps; rung <= step; rung *= settings_.eta) {
      if (settings_.max_steps > 0 && rung >= settings_.max_steps) break;
      if (rung > before) reached = rung;
      if (rung > step / settings_.eta) break;  // the next one is beyond, and might overflow
    }
    return reached;
  }

  Settings settings_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Pruner>> MakeAsha(const Options& options) {
  Settings settings;
  const std::array known = {CountOption{"min_steps", &settings.min_steps, 1},
                            CountOption{"eta", &settings.eta, 2},
                            CountOption{"max_steps", &settings.max_steps, 0}};
  ESPALIER_RETURN_IF_ERROR(ReadOptions("asha", options, known));
  if (settings.max_steps > 0 && settings.max_steps < settings.min_steps) {
    return absl::InvalidArgumentError(
        absl::StrCat("pruner \"asha\" option \"max_steps\": needs 0 (none) or at least min_steps (",
                     settings.min_steps, "), got ", settings.max_steps));
  }
  return std::make_unique<Asha>(settings);
}

}  // namespace espalier
