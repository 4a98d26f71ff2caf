#pragma once

#include "allocator/allocation/objective.h"
#include "allocator/pool/board.h"

namespace espalier {

// Divides the board's slots among the holders so that the objective is greatest, as nearly as can
// be found in a few milliseconds: a knapsack over each holder's counts, placed with few changes and
// improved by exchanges, or what exchanges alone make of the present allocation if that is better.
// The result is never worse than the present. Holders without slots stay without, unless the
// objective may pause. Joining trials, and those resized less than `min_resize_interval_s` ago,
// keep what they have.
struct AllocationEffort {
  double polish_steps = 1.5e5;  // of dividing a few nodes at a time exactly
  int polish_draws = 16;        // groups of nodes that are drawn for that
  double near_bound = 2e-3;     // so near to the upper bound is near enough
};
void BestAllocation(Board& board, Objective& objective, double min_resize_interval_s,
                    const AllocationEffort& effort = {});

}  // namespace espalier
