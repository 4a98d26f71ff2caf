#pragma once

#include "allocator/pool/board.h"

namespace espalier {

// What every policy does before it optimises.

// Repairs what a lost or smaller node broke: overfull nodes give up the slots that are missed
// least, and a trial that is left with fewer than its minimum, whatever took its slots, is filled
// up or paused. Trials leave a draining node when there is room elsewhere. Also takes slots above a
// trial's maximum. With `reclaim`, filling up may take slots from trials that hold more than their
// minimum.
void Mend(Board& board, bool reclaim);

// Gives waiting trials their minimum in order of submission, and gives running ones that are below
// it (because they were pinned to more) as much. Returns whether anything changed.
bool AdmitWaiting(Board& board, bool reclaim);

// The promise-weighted speedup lost for each slot if the trial shrinks to `slots`.
double LossPerSlot(Board& board, std::size_t j, int slots);

}  // namespace espalier
