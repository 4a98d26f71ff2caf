#pragma once

namespace espalier {

// Of the standard normal distribution: probability below x, and the x of a probability in (0, 1)
// (full double precision: Acklam's rational approximation and one step of Halley's method).
double NormalCdf(double x);
double NormalQuantile(double probability);

// Probability between low and high, exact in the far tails too. Requires low <= high.
double NormalMass(double low, double high);

}  // namespace espalier
