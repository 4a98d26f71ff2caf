#pragma once

// The best allocation there is, found by looking at all of them: the peer of BestAllocation in
// small pools.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "allocator/allocation/best_allocation.h"
#include "allocator/allocation/objective.h"
#include "allocator/pool/board.h"

namespace espalier {

inline double TotalWorth(Board& board, Objective& objective) {
  double sum = 0;
  for (std::size_t j = 0; j < board.size(); ++j) {
    sum += objective.WorthOf(board, j, board.holder(j).shares);
  }
  return sum;
}

// Every placement of the holder on the board's nodes, on one GPU type.
inline std::vector<Shares> AllPlacements(const Board& board, std::size_t j, bool may_pause) {
  const Job& job = *board.holder(j).job;
  const int least = may_pause ? 0 : MinSlots(job);
  std::vector<Shares> all{{}};
  for (std::size_t n = 0; n < board.node_count(); ++n) {
    const std::size_t before = all.size();
    for (std::size_t i = 0; i < before; ++i) {
      if (!all[i].empty() && board.type_of(all[i]) != board.type_of(n)) continue;
      for (int slots = 1; slots <= board.most_for(j, n); ++slots) {
        if (TotalSlots(all[i]) + slots > PauseAwareGrowthCap(job)) break;
        all.push_back(all[i]);
        all.back().push_back({static_cast<int>(n), slots});
      }
    }
  }
  std::erase_if(all, [&](const Shares& shares) {
    if (shares.empty()) return !may_pause;
    return TotalSlots(shares) < least || (!job.sizes.empty() && !MayHold(job, TotalSlots(shares)));
  });
  return all;
}

// The greatest sum of worths over all legal divisions, by dynamic programming over what is left of
// each node and which of them carry a spanning job. Holders without slots stay so unless the
// objective may pause; nobody joins or cools down. The states, (slots + 1) x 2 a node, must be few.
inline double ExactWorth(Board& board, Objective& objective) {
  std::vector<std::int64_t> unit;  // of a node's used slots, in the index of a state
  std::int64_t states = 1;
  for (std::size_t n = 0; n < board.node_count(); ++n) {
    unit.push_back(states);
    states *= std::int64_t{2} * (board.capacity_of(n) + 1);
  }
  const double never = -std::numeric_limits<double>::infinity();
  std::vector<double> best(static_cast<std::size_t>(states), never);
  best[0] = 0;
  for (std::size_t j = 0; j < board.size(); ++j) {
    if (board.holder(j).total == 0 && !objective.MayPause()) continue;
    std::vector<double> next(best.size(), never);
    for (const Shares& shares : AllPlacements(board, j, objective.MayPause())) {
      const double worth = objective.WorthOf(board, j, shares);
      const bool spans = shares.size() > 1;
      std::int64_t step = 0;
      for (const Share& s : shares) {
        step += unit[static_cast<std::size_t>(s.node)] * (2 * s.slots + (spans ? 1 : 0));
      }
      for (std::int64_t state = 0; state + step < states; ++state) {
        if (best[static_cast<std::size_t>(state)] == never) continue;
        const bool fits = std::all_of(shares.begin(), shares.end(), [&](const Share& s) {
          const auto n = static_cast<std::size_t>(s.node);
          const std::int64_t digit =
              state / unit[n] % (std::int64_t{2} * (board.capacity_of(n) + 1));
          return digit / 2 + s.slots <= board.capacity_of(n) && !(spans && digit % 2 == 1);
        });
        if (!fits) continue;
        double& at = next[static_cast<std::size_t>(state + step)];
        at = std::max(at, best[static_cast<std::size_t>(state)] + worth);
      }
    }
    best.swap(next);
  }
  return *std::max_element(best.begin(), best.end());
}

}  // namespace espalier
