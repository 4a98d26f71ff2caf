#include "tuner/core/pruners/curve_reading.h"

#include <algorithm>
#include <cmath>
#include <vector>

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

namespace {

absl::Status OutOfRange(std::string_view pruner, std::string_view name, std::string_view needs,
                        double got) {
  return absl::InvalidArgumentError(absl::StrCat("pruner \"", std::string(pruner), "\" option \"",
                                                 std::string(name), "\": needs ",
                                                 std::string(needs), ", got ", got));
}

absl::Status ReadCount(std::string_view pruner, const CountOption& option, double value) {
  const bool whole = value == std::floor(value) && std::abs(value) <= kMostCount;
  if (!whole || value < static_cast<double>(option.least)) {
    return OutOfRange(pruner, option.name, absl::StrCat("a whole number >= ", option.least), value);
  }
  *option.value = static_cast<std::int64_t>(value);
  return absl::OkStatus();
}

absl::Status ReadShare(std::string_view pruner, const ShareOption& option, double value) {
  if (!(value > 0 && value < 1)) {
    return OutOfRange(pruner, option.name, "a number between 0 and 1", value);
  }
  *option.value = value;
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadOptions(std::string_view pruner, const Options& options,
                         std::span<const CountOption> counts, std::span<const ShareOption> shares) {
  std::vector<std::string> names;
  for (const CountOption& option : counts) names.emplace_back(option.name);
  for (const ShareOption& option : shares) names.emplace_back(option.name);
  for (const auto& [name, value] : options) {
    absl::Status status = absl::InvalidArgumentError(
        absl::StrCat("pruner \"", std::string(pruner), "\" has no option \"", name, "\"; it has ",
                     absl::StrJoin(names, ", ")));
    for (const CountOption& option : counts) {
      if (option.name == name) status = ReadCount(pruner, option, value);
    }
    for (const ShareOption& option : shares) {
      if (option.name == name) status = ReadShare(pruner, option, value);
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace espalier
