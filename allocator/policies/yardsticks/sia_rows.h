#pragma once

#include <vector>

#include "allocator/pool/board.h"

namespace espalier {

// One way to serve a trial: so many slots of a GPU type (an index into the board's types).
struct SiaEntry {
  int type = 0;
  int nodes = 1;
  int slots = 0;
  double value = 0;  // lambda less goodput^fairness: 0 is what having nothing is worth
};
using SiaRow = std::vector<SiaEntry>;

// The row of a trial, in ascending order of type and slots, one entry for each count of slots.
SiaRow SiaRowOf(Board& board, std::size_t j, double fairness, double lambda);

// The index into each row, or -1 for none, that makes the sum of values greatest within the slots
// of each type: exactly on one type; on several by prices of the types, then exactly within each.
std::vector<int> ChooseEntries(const std::vector<SiaRow>& rows, const std::vector<int>& capacity);

}  // namespace espalier
