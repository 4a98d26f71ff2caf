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

// The reason to end a trial none of whose values counts (see Counts in curve.h); nullopt if one
// does.
std::optional<std::string> NoValueCounts(Direction direction, const Curve& trial);

}  // namespace espalier
