#pragma once

#include <cmath>
#include <cstdint>

namespace espalier {

// A share of 32.000000001 samples is 32.
inline constexpr double kSampleRounding = 1e-8;

// The smallest whole number of samples, or microbatches, that holds x of them.
inline std::int64_t CeilOfSamples(double x) {
  return static_cast<std::int64_t>(std::ceil(x - kSampleRounding));
}

}  // namespace espalier
