#pragma once

#include <cstddef>

namespace espalier {

// The sums by which gradient noise is measured, on the CPU, each in one pass over memory. Sums of
// at most a few thousand products are float, their sum is double. Pure; pointers need no alignment.

// The factor by which Adam scales element i before it steps: 1 / (sqrt(second_moment[i]) * factor +
// epsilon), with factor = 1 / sqrt(1 - beta2^t). Without second_moment: 1.
struct ElementScale {
  const float* second_moment = nullptr;
  float factor = 1;
  float epsilon = 0;
};

// |gradient|^2.
double SquaredNorm(const float* gradient, std::size_t size, const ElementScale& scale);

// `into` = weight * gradient, or with `add` += that; returns |gradient|^2.
double FoldGradient(const float* gradient, std::size_t size, const ElementScale& scale,
                    float weight, bool add, float* into);

struct PairNorms {
  double sqr = 0;           // |gradient|^2
  double previous_sqr = 0;  // |previous|^2
  double product = 0;       // gradient . previous
};
PairNorms NormsWithPrevious(const float* gradient, const float* previous, std::size_t size,
                            const ElementScale& scale);

}  // namespace espalier
