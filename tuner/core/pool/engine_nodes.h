#pragma once

#include <vector>

#include "allocator/pool_size/pool_size.h"
#include "tuner/core/pool/pool_state.h"
#include "tuner/core/state/engine_node_names.h"

namespace espalier {

// Slots of nodes that are not the engine's.
int SlotsOfOtherNodes(const PoolState& pool);
// Slots that a pool with such nodes of an engine may come to have.
int MostSlots(const PoolState& pool, const std::vector<NodeTemplate>& templates);

}  // namespace espalier
