#pragma once

namespace espalier {

// Of the standard normal distribution: probability below x, and the x of a probability in (0, 1)
// (to about 1 part in 10^16: algorithm AS 241).
double NormalCdf(double x);
double NormalQuantile(double probability);

// Probability between low and high, exact in the far tails too. Requires low <= high.
double NormalMass(double low, double high);

}  // namespace espalier
