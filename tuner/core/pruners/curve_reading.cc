#include "tuner/core/pruners/curve_reading.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace espalier {

const IntermediateValue* FirstPointFrom(const Curve& curve, std::int64_t step) {
  const auto points = curve.points;
  if (points.empty() || points.back().step < step) return nullptr;
  // Most programs report steps 1, 2, 3, ...
  const auto guess = static_cast<std::size_t>(std::max<std::int64_t>(step - 1, 0));
  if (guess < points.size() && points[guess].step == step) return &points[guess];
  const auto at =
      std::lower_bound(points.begin(), points.end(), step,
                       [](const IntermediateValue& p, std::int64_t s) { return p.step < s; });
  return &*at;
}

const IntermediateValue* PointAt(const Curve& curve, std::int64_t step) {
  const IntermediateValue* point = FirstPointFrom(curve, step);
  return point != nullptr && point->step == step ? point : nullptr;
}

bool IsFirstOfInterval(const Curve& trial, std::int64_t warmup_steps, std::int64_t interval) {
  const std::int64_t step = trial.points.back().step;
  if (step < warmup_steps) return false;
  if (trial.points.size() == 1) return true;
  const std::int64_t before = trial.points[trial.points.size() - 2].step;
  return before < warmup_steps + (step - warmup_steps) / interval * interval;
}

std::optional<std::string> NoValueCounts(Direction direction, const Curve& trial) {
  const auto counts = [direction](const auto& point) { return Counts(direction, point.value); };
  if (std::ranges::any_of(trial.points, counts)) return std::nullopt;
  const IntermediateValue& last = trial.points.back();
  return absl::StrFormat("%.4g at step %d, and no value before it was a number", last.value,
                         last.step);
}

}  // namespace espalier
