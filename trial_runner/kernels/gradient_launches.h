#pragma once

#include <cstdint>

#include "trial_runner/kernels/gradient_blocks.h"

namespace espalier {

// Divides the pieces into launches and has each begun: `begin(const GradientLaunch&)` is false
// where that failed. Each piece has blocks of its own; one without elements has none.
template <typename Begin>
bool ForEachGradientLaunch(const GradientSums& sums, Begin begin) {
  GradientLaunch launch;
  launch.weight = sums.weight;
  launch.add = sums.add;
  launch.partials = sums.wanted > 0 ? sums.partials : nullptr;
  for (std::size_t i = 0; i < sums.pieces.size(); ++i) {
    const GradientPiece& piece = sums.pieces[i];
    if (piece.count > 0) {
      launch.pieces[launch.count] = piece;
      launch.first_block[launch.count++] = launch.blocks;
      launch.blocks +=
          static_cast<std::int32_t>((piece.count + kGradientBlock - 1) / kGradientBlock);
    }
    const bool last = i + 1 == sums.pieces.size();
    if (launch.count == 0 || !(last || launch.count == kMostGradientPieces)) continue;
    if (!begin(launch)) return false;
    if (launch.partials != nullptr) launch.partials += launch.blocks;
    launch.count = launch.blocks = 0;
  }
  return true;
}

inline GradientTotals TotalsOf(const GradientSums& sums) {
  return {.partials = sums.partials,
          .count = GradientBlocks(sums.pieces),
          .groups = sums.groups,
          .sums = sums.sums,
          .factor = sums.factor,
          .add = sums.add_sums};
}

}  // namespace espalier
