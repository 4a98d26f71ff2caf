#include "tuner/core/pruners/curve_reading.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace espalier {

namespace {
constexpr double kMostCount = 1e15;  // whole and exact in a double
}  // namespace

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

absl::Status ReadCounts(std::string_view pruner, const Options& options,
                        std::span<const CountOption> known) {
  for (const auto& [name, value] : options) {
    const auto row = std::find_if(known.begin(), known.end(),
                                  [&](const CountOption& o) { return o.name == name; });
    if (row == known.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "pruner \"", std::string(pruner), "\" has no option \"", name, "\"; it has ",
          absl::StrJoin(known, ", ",
                        [](std::string* out, const CountOption& o) { out->append(o.name); })));
    }
    const bool whole = value == std::floor(value) && std::abs(value) <= kMostCount;
    if (!whole || value < static_cast<double>(row->least)) {
      return absl::InvalidArgumentError(
          absl::StrCat("pruner \"", std::string(pruner), "\" option \"", name,
                       "\": needs a whole number >= ", row->least, ", got ", value));
    }
    *row->value = static_cast<std::int64_t>(value);
  }
  return absl::OkStatus();
}

}  // namespace espalier
