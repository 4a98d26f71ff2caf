#include "trial_runner/kernels/norm_kernels.h"

#include <algorithm>
#include <cmath>

#include "trial_runner/kernels/clones.h"

#ifdef __GNUC__
#define ESPALIER_INLINE inline __attribute__((always_inline))  // into each clone
#else
#define ESPALIER_INLINE inline
#endif

namespace espalier {
namespace {

// Short enough for float sums to stay exact to 1e-6, long enough to fill the vector units.
constexpr std::size_t kBlock = 4096;

// So many sums side by side, because each addition waits for the one before it in the same sum.
constexpr std::size_t kSums = 32;

ESPALIER_INLINE float SumOfSquares(const float* values, std::size_t size) {
  float sums[kSums] = {};
  std::size_t i = 0;
  for (; i + kSums <= size; i += kSums) {
#pragma omp simd
    for (std::size_t k = 0; k < kSums; ++k) sums[k] += values[i + k] * values[i + k];
  }
  float sum = 0;
  for (; i < size; ++i) sum += values[i] * values[i];
  for (const float part : sums) sum += part;
  return sum;
}

}  // namespace

ESPALIER_CLONES double SquaredNorm(const float* gradient, std::size_t size,
                                   const ElementScale& scale) {
  double total = 0;
  for (std::size_t begin = 0; begin < size; begin += kBlock) {
    const std::size_t end = std::min(size, begin + kBlock);
    float sum = 0;
    if (const float* v = scale.second_moment) {
#pragma omp simd reduction(+ : sum)
      for (std::size_t i = begin; i < end; ++i) {
        const float g = gradient[i] / (std::sqrt(v[i]) * scale.factor + scale.epsilon);
        sum += g * g;
      }
    } else {
      sum = SumOfSquares(gradient + begin, end - begin);
    }
    total += static_cast<double>(sum);
  }
  return total;
}

ESPALIER_CLONES double FoldGradient(const float* gradient, std::size_t size,
                                    const ElementScale& scale, float weight, bool add,
                                    float* into) {
  double total = 0;
  for (std::size_t begin = 0; begin < size; begin += kBlock) {
    const std::size_t end = std::min(size, begin + kBlock);
    // NOLINTNEXTLINE(bugprone-branch-clone): it takes any two loops under a pragma for the same
    if (add) {
#pragma omp simd
      for (std::size_t i = begin; i < end; ++i) into[i] += weight * gradient[i];
    } else {
#pragma omp simd
      for (std::size_t i = begin; i < end; ++i) into[i] = weight * gradient[i];
    }
    // The block is in the nearest cache now.
    const ElementScale part{scale.second_moment == nullptr ? nullptr : scale.second_moment + begin,
                            scale.factor, scale.epsilon};
    total += SquaredNorm(gradient + begin, end - begin, part);
  }
  return total;
}

ESPALIER_CLONES PairNorms NormsWithPrevious(const float* gradient, const float* previous,
                                            std::size_t size, const ElementScale& scale) {
  PairNorms norms;
  for (std::size_t begin = 0; begin < size; begin += kBlock) {
    const std::size_t end = std::min(size, begin + kBlock);
    float sqr = 0;
    float previous_sqr = 0;
    float product = 0;
    if (const float* v = scale.second_moment) {
#pragma omp simd reduction(+ : sqr, previous_sqr, product)
      for (std::size_t i = begin; i < end; ++i) {
        const float s = 1 / (std::sqrt(v[i]) * scale.factor + scale.epsilon);
        const float g = gradient[i] * s;
        const float p = previous[i] * s;
        sqr += g * g;
        previous_sqr += p * p;
        product += g * p;
      }
    } else {
#pragma omp simd reduction(+ : sqr, previous_sqr, product)
      for (std::size_t i = begin; i < end; ++i) {
        sqr += gradient[i] * gradient[i];
        previous_sqr += previous[i] * previous[i];
        product += gradient[i] * previous[i];
      }
    }
    norms.sqr += static_cast<double>(sqr);
    norms.previous_sqr += static_cast<double>(previous_sqr);
    norms.product += static_cast<double>(product);
  }
  return norms;
}

}  // namespace espalier
