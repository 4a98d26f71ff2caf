#pragma once

namespace espalier {

// For the standard normal distribution: the probability below x, and the x for a probability in (0,
// 1) (to about 1 part in 10^16: algorithm AS 241).
double NormalCdf(double x);
double NormalQuantile(double probability);

// The probability between low and high, exact in the far tails too. Requires low <= high.
double NormalMass(double low, double high);

// Its logarithm, to about 1 part in 10^11 of the probability: for intervals that are too narrow or
// too far from the middle for the above. Requires low < high.
double LogNormalMass(double low, double high);

// The same of an interval that is narrow, by its middle and width, with the logarithm of the width,
// which who asks for many may know.
inline bool IsNarrow(double middle, double width) {
  constexpr double kNarrow = 0.1;
  return width <= kNarrow && width * middle <= kNarrow && -width * middle <= kNarrow;
}
double LogNarrowMass(double middle, double width, double log_width);

}  // namespace espalier
