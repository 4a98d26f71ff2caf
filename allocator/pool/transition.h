#pragma once

#include <vector>

#include "allocator/pool/board.h"

namespace espalier {

// Adjusts `planned` (one entry for each holder) until trials can go from where they are on the
// board to where they are to be, without any of them having to give way before it has a place to go
// to: a trial that leaves all its nodes needs a free slot at its goal before it lets go. Trials
// that would wait for each other in a ring, and those that then no longer have room, keep what they
// have.
void KeepMovesPossible(const Board& board, std::vector<Shares>& planned);

}  // namespace espalier
