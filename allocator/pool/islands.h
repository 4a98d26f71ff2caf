#pragma once

#include <set>
#include <utility>
#include <vector>

#include "allocator/pool/pool.h"

namespace espalier {

// Two nodes that cannot talk to one another, the lower id first.
using NodePair = std::pair<NodeId, NodeId>;
NodePair PairOf(NodeId a, NodeId b);

// Whether the placement has slots on both nodes of one of the pairs.
bool SpansAny(const Placement& placement, const std::set<NodePair>& apart);

// Gives every node of the pool its island, such that no two nodes of a pair are on one. This is all
// that a policy needs to know about the matter. Nodes that a trial spans now stay together, since
// they do talk. Node by node, those with the fewest pairs first, each goes to the first island that
// has room for it; so nodes without pairs are together, and a node that no other can reach is
// alone. Islands say less than the pairs: a node that two nodes reach which do not reach each other
// is with one of them only.
void AssignIslands(Pool& pool, const std::set<NodePair>& apart);

}  // namespace espalier
