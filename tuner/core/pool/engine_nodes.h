#pragma once

#include <string_view>

#include "allocator/pool_size/pool_size.h"
#include "tuner/core/pool/pool_state.h"

namespace espalier {

inline constexpr std::string_view kEngineNode = "pool-";

// Whether a node is the engine's, by its name ("pool-7"), which is all that a restarted service
// knows of it.
bool IsEngineNode(std::string_view name);

// Slots of nodes that are not the engine's.
int SlotsOfOtherNodes(const PoolState& pool);
// Slots that a pool with such nodes of an engine may come to have.
int MostSlots(const PoolState& pool, const NodeTemplate& node);

}  // namespace espalier
