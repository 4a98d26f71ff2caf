#pragma once

#include "allocator/pool/board.h"

namespace espalier {

// What every policy does before it optimises.

// Mends what a lost or smaller node broke: overfull nodes give up the slots that are missed least,
// and a trial that lost slots and is left with fewer than its minimum is filled up or paused. What
// is on a draining node leaves when there is room elsewhere.
// Also takes slots above a trial's maximum. With `reclaim`, filling up may take slots from trials
// that hold more than their minimum.
void Mend(Board& board, bool reclaim);

// Gives waiting trials their minimum in order of submission, and running ones below it (their
// minimum rose) as much. Returns whether anything changed.
bool AdmitWaiting(Board& board, bool reclaim);

// Promise-weighted speedup lost for each slot if the trial shrinks to `slots`.
double LossPerSlot(Board& board, std::size_t j, int slots);

}  // namespace espalier
