#pragma once

#include "allocator/pool/board.h"

namespace espalier {

// Fills in, for the reasons of a finished division, where each grown seat's slots come from and why
// each other one lost its own, by comparing what seats hold with what they held at first. What is
// in Seat::lost already (why a node went) is kept.
void AttributeChanges(Board& board);

}  // namespace espalier
