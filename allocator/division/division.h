#pragma once

#include "allocator/division/objective.h"
#include "allocator/pool/board.h"

namespace espalier {

// Divides the board's slots among the seats so that the objective is greatest, as nearly as can be
// found in a few milliseconds: a knapsack over each seat's counts, placed with few changes,
// bettered by exchanges; beside what exchanges alone make of the present. Never worse than what is
// there. Seats without slots stay without, unless the objective may pause. Joining trials, and
// those resized less than `min_resize_interval_s` ago, keep what they have.
struct DivisionEffort {
  double polish_steps = 1.5e5;  // of dividing a few nodes at a time exactly
  int polish_draws = 16;        // groups of nodes that are drawn for that
  double near_bound = 2e-3;     // as near to what could be at best is near enough
};
void BestDivision(Board& board, Objective& objective, double min_resize_interval_s,
                  const DivisionEffort& effort = {});

}  // namespace espalier
