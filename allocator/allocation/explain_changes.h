#pragma once

#include "allocator/pool/board.h"

namespace espalier {

// Completes the reasons of a finished allocation: where the slots of each holder that has grown
// come from, and why each other holder lost slots, by comparing what holders hold with what they
// held at first. What is in Holder::lost already (why a node is gone) is kept. Sets the figures of
// each holder whose slots have changed.
void ExplainChanges(Board& board);

}  // namespace espalier
