#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tuner/core/state/curve.h"

namespace espalier {

// The point at exactly `step`, or the first one at `step` or later; null if there is none. Constant
// time for curves that report every step, else logarithmic.
const IntermediateValue* PointAt(const Curve& curve, std::int64_t step);
const IntermediateValue* FirstPointFrom(const Curve& curve, std::int64_t step);

// Whether a trial that is judged once in each interval of steps, counted from `warmup_steps`, is
// judged at its newest point: the first one of its interval. Never in the warm-up. Requires a
// point.
bool IsFirstOfInterval(const Curve& trial, std::int64_t warmup_steps, std::int64_t interval);

// The reason to end a trial none of whose values counts (see Counts in curve.h); nullopt if one
// does.
std::optional<std::string> NoValueCounts(Direction direction, const Curve& trial);

}  // namespace espalier
