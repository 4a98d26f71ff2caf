#pragma once

namespace espalier {

// Exponential and logarithm that are the same on every machine with IEEE 754 doubles. A library's
// own differ in the last bit between libraries, versions and instruction sets, and what a seed
// draws must not depend on them. Worked out in twice a double's precision and rounded once, so all
// but perhaps one in 10^12 results are the nearest double. About 0.3 us each.

// 0 where the result is smaller than any double, infinity where it is larger.
double PortableExp(double x);

// Requires 0 < x < infinity.
double PortableLog(double x);

}  // namespace espalier
