#pragma once

namespace espalier {

// Exponential and logarithm that are the same on every machine with IEEE 754 doubles. Those of C
// libraries differ in the last bit between libraries, versions and instruction sets, and what a
// seed draws must not depend on that. They are worked out in twice a double's precision and rounded
// once, so all but perhaps one in 10^12 results are the nearest double. About 0.3 us each.

// 0 where the result is smaller than any double, infinity where it is larger.
double PortableExp(double x);

// Requires 0 < x < infinity.
double PortableLog(double x);

// These compute in a double's own arithmetic: they are off by a unit or two in the last place, but
// twenty times as fast. They are for the densities of models.
double QuickExp(double x);
double QuickLog(double x);  // requires 0 < x < infinity

// Complementary error function of z >= 0, to about 1 part in 10^15 of the result (1 in 10^13 where
// that is below 10^-100).
double QuickErfc(double z);

// e^(z^2) times that, about 1 / (z sqrt(pi)) where z is large; to about 1 part in 10^15.
double QuickErfcx(double z);
// Its logarithm, where it has become too small for a double too.
double QuickLogErfc(double z);

}  // namespace espalier
