#include "tuner/core/pruners/curve_reading.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

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

std::optional<std::string> NotANumber(const Curve& trial) {
  const IntermediateValue& last = trial.points.back();
  if (!std::isnan(last.value)) return std::nullopt;
  return absl::StrCat("the value at step ", last.step, " is not a number");
}

}  // namespace espalier
