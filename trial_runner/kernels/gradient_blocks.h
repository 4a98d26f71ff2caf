#pragma once

// What each thread of the kernels for GradientSums does, for nvcc and for the host's compiler: the
// tests run the same blocks and threads by loops. Between the phases of a block its threads wait
// for each other.

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "trial_runner/kernels/gradient_sums.h"

#ifdef __CUDACC__
#define ESPALIER_DEVICE __host__ __device__ inline
#else
#define ESPALIER_DEVICE inline
#endif
#ifdef __CUDA_ARCH__
#define ESPALIER_UNROLL _Pragma("unroll 4")  // so that several reads are under way
#else
#define ESPALIER_UNROLL
#endif

namespace espalier {

inline constexpr int kGradientThreads = 256;  // of a block; a power of two
// Each thread adds 64 products in float, all else is double. Few enough for a model of 10 million
// parameters to occupy a GPU, enough for their sum to cost little.
inline constexpr std::int64_t kGradientBlock = std::int64_t{64} * kGradientThreads;
inline constexpr std::int32_t kMostGradientPieces = 64;

// The argument of one launch, which is copied with it. CUDA's limit for all arguments is 4 KB on
// older drivers.
struct GradientLaunch {
  GradientPiece pieces[kMostGradientPieces];
  std::int32_t first_block[kMostGradientPieces];  // of each piece; of this launch
  std::int32_t count = 0;                         // of pieces
  std::int32_t blocks = 0;
  GradientPartial* partials = nullptr;  // of this launch's first block; null: nothing is summed
  float weight = 1;
  bool add = false;
};
static_assert(sizeof(GradientLaunch) <= 4096);

struct GradientBlockSums {
  double sqr;
  double previous_sqr;
  double product;
  double plain_sqr;
};

ESPALIER_DEVICE void AddTo(GradientBlockSums& sums, const GradientBlockSums& more) {
  sums.sqr += more.sqr;
  sums.previous_sqr += more.previous_sqr;
  sums.product += more.product;
  sums.plain_sqr += more.plain_sqr;
}

// The piece to which a block belongs: the last that begins at it or before.
ESPALIER_DEVICE std::int32_t PieceOfBlock(const GradientLaunch& launch, std::int32_t block) {
  std::int32_t first = 0;
  std::int32_t last = launch.count - 1;
  while (first < last) {
    const std::int32_t middle = (first + last + 1) / 2;
    if (launch.first_block[middle] <= block) {
      first = middle;
    } else {
      last = middle - 1;
    }
  }
  return first;
}

// Elements of a piece that are a block's: at most kGradientBlock from `begin`.
struct GradientStretch {
  std::int64_t begin;
  std::int32_t count;
};
ESPALIER_DEVICE GradientStretch StretchOfBlock(const GradientPiece& piece,
                                               std::int32_t block_of_piece) {
  const std::int64_t begin = block_of_piece * kGradientBlock;
  const std::int64_t left = piece.count - begin;
  return {begin, static_cast<std::int32_t>(left < kGradientBlock ? left : kGradientBlock)};
}

template <bool kScaled, bool kCompared, bool kFolded, bool kSummed>
ESPALIER_DEVICE GradientBlockSums SumOfStretch(const GradientPiece& piece,
                                               const GradientStretch& stretch, float weight,
                                               bool add, int thread) {
  const float* __restrict__ const gradient = piece.gradient + stretch.begin;
  const float* __restrict__ const previous = kCompared ? piece.previous + stretch.begin : nullptr;
  const float* __restrict__ const moment =
      kScaled ? piece.scale.second_moment + stretch.begin : nullptr;
  float* __restrict__ const folded = kFolded ? piece.folded + stretch.begin : nullptr;
  float sqr = 0;
  float previous_sqr = 0;
  float product = 0;
  float plain_sqr = 0;
  ESPALIER_UNROLL
  for (std::int32_t i = thread; i < stretch.count; i += kGradientThreads) {
    const float plain = gradient[i];
    if constexpr (kFolded) folded[i] = add ? folded[i] + weight * plain : weight * plain;
    if constexpr (kSummed) {
      float scale = 1;
      if constexpr (kScaled) {
        scale = 1 / (std::sqrt(moment[i]) * piece.scale.factor + piece.scale.epsilon);
        plain_sqr += plain * plain;
      }
      const float now = plain * scale;
      sqr += now * now;
      if constexpr (kCompared) {
        const float before = previous[i] * scale;
        previous_sqr += before * before;
        product += now * before;
      }
    }
  }
  return {static_cast<double>(sqr), static_cast<double>(previous_sqr), static_cast<double>(product),
          static_cast<double>(kScaled ? plain_sqr : sqr)};
}

// A block's first phase: a thread's part of it. What is decided here is alike in the whole block.
ESPALIER_DEVICE GradientBlockSums SumOfThread(const GradientLaunch& launch, std::int32_t block,
                                              int thread) {
  const std::int32_t index = PieceOfBlock(launch, block);
  const GradientPiece& piece = launch.pieces[index];
  const GradientStretch stretch = StretchOfBlock(piece, block - launch.first_block[index]);
  const float weight = launch.weight;
  const bool add = launch.add;
  const bool scaled = piece.scale.second_moment != nullptr;
  if (launch.partials == nullptr) {
    return SumOfStretch<false, false, true, false>(piece, stretch, weight, add, thread);
  }
  if (piece.folded != nullptr) {
    return scaled ? SumOfStretch<true, false, true, true>(piece, stretch, weight, add, thread)
                  : SumOfStretch<false, false, true, true>(piece, stretch, weight, add, thread);
  }
  if (piece.previous != nullptr) {
    return scaled ? SumOfStretch<true, true, false, true>(piece, stretch, weight, add, thread)
                  : SumOfStretch<false, true, false, true>(piece, stretch, weight, add, thread);
  }
  return scaled ? SumOfStretch<true, false, false, true>(piece, stretch, weight, add, thread)
                : SumOfStretch<false, false, false, true>(piece, stretch, weight, add, thread);
}

// Its last phase, by one thread, after the sums of all were added up by halves.
ESPALIER_DEVICE void StorePartial(const GradientLaunch& launch, std::int32_t block,
                                  const GradientBlockSums& of_block) {
  GradientPartial& partial = launch.partials[block];
  partial.sums[0] = of_block.sqr;
  partial.sums[1] = of_block.previous_sqr;
  partial.sums[2] = of_block.product;
  partial.sums[3] = of_block.plain_sqr;
  partial.group = launch.pieces[PieceOfBlock(launch, block)].group;
}

// The argument of the second kernel, which has a block for each sum that is wanted.
struct GradientTotals {
  const GradientPartial* partials = nullptr;
  std::int64_t count = 0;  // of partials
  std::int64_t groups = 1;
  float* sums = nullptr;
  float factor = 1;
  bool add = false;
};

// In the order of the partials, so that the sum is the same each time.
ESPALIER_DEVICE double TotalOfThread(const GradientTotals& totals, std::int32_t block, int thread) {
  const std::int64_t kind = block / totals.groups;  // 3: of all groups
  const std::int64_t group = block % totals.groups;
  double total = 0;
  for (std::int64_t i = thread; i < totals.count; i += kGradientThreads) {
    if (kind == 3 || totals.partials[i].group == group) total += totals.partials[i].sums[kind];
  }
  return total;
}

ESPALIER_DEVICE void StoreTotal(const GradientTotals& totals, std::int32_t block, double total) {
  const auto sum = static_cast<float>(static_cast<double>(totals.factor) * total);
  totals.sums[block] = totals.add ? totals.sums[block] + sum : sum;
}

}  // namespace espalier
