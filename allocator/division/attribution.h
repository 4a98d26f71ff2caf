#pragma once

#include "allocator/pool/board.h"

namespace espalier {

// Completes the reasons of a finished division: where the slots of each seat that has grown come
// from, and why each other seat lost slots, by comparing what seats hold with what they held at
// first. What is in Seat::lost already (why a node is gone) is kept.
void AttributeChanges(Board& board);

}  // namespace espalier
