#pragma once

#include <cstdint>
#include <vector>

#include "trial_runner/kernels/norm_kernels.h"

namespace espalier {

// A stretch of gradients that lie in device memory one after the other, of one optimizer group and
// with one scale. Pointers need no more alignment than a float's.
struct GradientPiece {
  const float* gradient = nullptr;
  const float* previous = nullptr;  // of the step before; null: not compared; not of what is folded
  float* folded = nullptr;          // gets weight * gradient, see GradientSums; null: not folded
  ElementScale scale{};
  std::int64_t count = 0;
  std::int32_t group = 0;
};

// What one block has found in its part of a piece.
struct GradientPartial {
  double sums[4];  // scaled |gradient|^2, |previous|^2, gradient . previous; unscaled |gradient|^2
  std::int64_t group;
};

// Weight, sum and norms of gradients in one pass over the memory, which is read once: what
// GradientBuckets has a kernel of our own for on GPUs. The sums are the same to the last bit
// whenever the same pieces are summed on the same kind of device.
struct GradientSums {
  std::vector<GradientPiece> pieces{};
  std::int64_t groups = 1;

  // For pieces that are folded: folded = weight * gradient, or with `add`, folded += that.
  float weight = 1;
  bool add = false;

  // The number of sums wanted, counted from the first of 3 * groups + 1: by group |gradient|^2,
  // |previous|^2 and gradient . previous, scaled; then |gradient|^2 of all, unscaled.
  std::int64_t wanted = 0;
  float* sums = nullptr;  // in device memory; they are set to factor * sum, or with `add_sums` +=
  float factor = 1;
  bool add_sums = false;
  GradientPartial* partials =
      nullptr;  // so many as there are blocks, in device memory; any content
};

// How many blocks the pieces are divided into.
std::int64_t GradientBlocks(const std::vector<GradientPiece>& pieces);

}  // namespace espalier
