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

// The reason to end a trial whose newest value is not a number; nullopt if it is a number.
std::optional<std::string> NotANumber(const Curve& trial);

}  // namespace espalier
