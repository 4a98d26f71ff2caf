#pragma once

#include "tuner/core/state/change.h"

namespace espalier {

// Google Test expectations that two states are the same, doubles bit for bit: a NaN equals itself,
// and 0.0 is not -0.0.
void ExpectSame(const TunerState& actual, const TunerState& expected);

}  // namespace espalier
