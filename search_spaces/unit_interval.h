#pragma once

#include <cstddef>

#include "search_spaces/distribution.h"

namespace espalier {

// Maps numeric distributions to the unit interval: a value's place in it is the probability of
// drawing less. The prior is uniform there, logarithmic and bell-shaped distributions are
// straightened, and a discrete value owns a cell as wide as it is probable. Choices have no such
// order.

// The value at u in [0, 1].
ParameterValue FromUnit(const Distribution& distribution, double u);

struct UnitCell {
  double low;
  double high;  // equal to low where values are continuous
  double Middle() const { return 0.5 * (low + high); }
};

// Requires a numeric distribution that contains the value.
UnitCell ToUnit(const Distribution& distribution, const ParameterValue& value);

// The nearest multiple of q; a tie goes to the even multiple.
double RoundToMultiple(double x, double q);

}  // namespace espalier
