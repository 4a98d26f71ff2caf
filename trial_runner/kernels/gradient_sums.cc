#include "trial_runner/kernels/gradient_sums.h"

#include "trial_runner/kernels/gradient_blocks.h"

namespace espalier {

std::int64_t GradientBlocks(const std::vector<GradientPiece>& pieces) {
  std::int64_t blocks = 0;
  for (const GradientPiece& piece : pieces) {
    blocks += (piece.count + kGradientBlock - 1) / kGradientBlock;
  }
  return blocks;
}

}  // namespace espalier
