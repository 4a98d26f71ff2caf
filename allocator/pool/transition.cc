#include "allocator/pool/transition.h"

#include <algorithm>
#include <cstddef>

namespace espalier {

namespace {

std::size_t Index(int node) { return static_cast<std::size_t>(node); }

// What it can hold on to while it moves: what it has and shall have.
Shares Common(const Shares& now, const Shares& then) {
  Shares common;
  for (const Share& share : now) {
    const int slots = std::min(share.slots, SlotsOn(then, share.node));
    if (slots > 0) common.push_back({share.node, slots});
  }
  return common;
}

void Change(std::vector<int>& free, const Shares& shares, int sign) {
  for (const Share& share : shares) free[Index(share.node)] += sign * share.slots;
}

// Trials that leave all their nodes and never find a free slot at their goal.
std::vector<std::size_t> Stuck(const Board& board, const std::vector<Shares>& planned) {
  std::vector<int> free(board.node_count());
  for (std::size_t n = 0; n < free.size(); ++n) free[n] = board.free_on(n);
  std::vector<std::size_t> waiting;
  for (std::size_t j = 0; j < planned.size(); ++j) {
    const Shares& now = board.holder(j).shares;
    if (now.empty()) continue;
    const Shares common = Common(now, planned[j]);
    if (common.empty() && !planned[j].empty()) {
      waiting.push_back(j);
      continue;
    }
    Change(free, now, +1);
    Change(free, common, -1);
  }
  const auto moves = [&](std::size_t j) {
    const auto goal =
        std::find_if(planned[j].begin(), planned[j].end(),
                     [&free](const Share& share) { return free[Index(share.node)] > 0; });
    if (goal == planned[j].end()) return false;
    Change(free, board.holder(j).shares, +1);
    --free[Index(goal->node)];
    return true;
  };
  while (std::erase_if(waiting, moves) > 0) {
  }
  return waiting;
}

// Whether the plan gives a node more than it has, or two trials that span nodes.
bool Illegal(const Board& board, const std::vector<Shares>& planned, std::size_t node) {
  int capacity = board.free_on(node);
  int given = 0;
  int spanning = 0;
  for (std::size_t j = 0; j < planned.size(); ++j) {
    capacity += SlotsOn(board.holder(j).shares, static_cast<int>(node));
    const int slots = SlotsOn(planned[j], static_cast<int>(node));
    given += slots;
    spanning += slots > 0 && planned[j].size() > 1 ? 1 : 0;
  }
  return given > capacity || spanning > 1;
}

// Whoever shall have something new on a node that the plan now asks too much of, stays as it is.
bool MakeRoom(const Board& board, std::vector<Shares>& planned) {
  bool changed = false;
  for (std::size_t n = 0; n < board.node_count(); ++n) {
    if (!Illegal(board, planned, n)) continue;
    for (std::size_t j = 0; j < planned.size(); ++j) {
      if (planned[j] == board.holder(j).shares || SlotsOn(planned[j], static_cast<int>(n)) == 0) {
        continue;
      }
      planned[j] = board.holder(j).shares;
      changed = true;
    }
  }
  return changed;
}

}  // namespace

void KeepMovesPossible(const Board& board, std::vector<Shares>& planned) {
  for (;;) {
    const std::vector<std::size_t> stuck = Stuck(board, planned);
    if (stuck.empty()) return;
    for (const std::size_t j : stuck) planned[j] = board.holder(j).shares;
    while (MakeRoom(board, planned)) {
    }
  }
}

}  // namespace espalier
