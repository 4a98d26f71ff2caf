#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "tuner/base/options.h"
#include "tuner/core/curve.h"

namespace espalier {

// The point at exactly `step`, or the first one at `step` or later; null if there is none. Constant
// time for curves that report every step, else logarithmic.
const IntermediateValue* PointAt(const Curve& curve, std::int64_t step);
const IntermediateValue* FirstPointFrom(const Curve& curve, std::int64_t step);

// Why a trial whose newest value is not a number ends; nullopt if it is a number.
std::optional<std::string> NotANumber(const Curve& trial);

// One whole-number option of a pruner.
struct CountOption {
  std::string_view name;
  std::int64_t* value;  // keeps its default where the options do not name it
  std::int64_t least;
};
// One option that is a share of something: more than 0 and less than 1.
struct ShareOption {
  std::string_view name;
  double* value;
};
// Fills `counts` and `shares` from `options`; an unknown name or a value out of range is an
// InvalidArgument.
absl::Status ReadOptions(std::string_view pruner, const Options& options,
                         std::span<const CountOption> counts,
                         std::span<const ShareOption> shares = {});

}  // namespace espalier
