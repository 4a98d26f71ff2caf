#pragma once

namespace espalier {

// For the standard normal distribution: the probability below x, and the x for a probability in (0,
// 1) (to about 1 part in 10^16: algorithm AS 241).
double NormalCdf(double x);
double NormalQuantile(double probability);

// The probability between low and high, exact in the far tails too. Requires low <= high.
double NormalMass(double low, double high);

}  // namespace espalier
