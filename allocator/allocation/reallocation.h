#pragma once

#include <span>
#include <vector>

#include "allocator/allocation/exchange.h"

namespace espalier {

// The largest number of nodes that can be divided anew together.
inline constexpr std::size_t kMostReallocated = 4;

struct ReallocationResult {
  bool complete = false;  // nothing better exists, or it was found
  bool changed = false;
  double steps = 0;  // taken
};

// Divides some nodes anew among the movable holders that are on them and nowhere else (and, where
// the objective may pause, those that have nothing). It finds the best of all ways to do so, by
// dynamic programming over what is left of each node and which of them carries a spanning job.
// States that cannot lead to more than the present value, even if what is left could be given out
// regardless of nodes, are dropped. Gives up after `max_steps`; then, and where nothing is better
// by more than rounding, nothing changes. The nodes are of one GPU type and none is draining.
ReallocationResult Reallocate(Board& board, Exchange& exchange, Objective& objective,
                              const std::vector<HolderLimits>& limits, std::span<const int> nodes,
                              double max_steps);

}  // namespace espalier
