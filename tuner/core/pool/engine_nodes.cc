#include "tuner/core/pool/engine_nodes.h"

namespace espalier {

int SlotsOfOtherNodes(const PoolState& pool) {
  int slots = 0;
  for (const auto& [id, node] : pool.nodes) slots += IsEngineNode(node.name) ? 0 : node.slots;
  return slots;
}

int MostSlots(const PoolState& pool, const std::vector<NodeTemplate>& templates) {
  int slots = SlotsOfOtherNodes(pool);
  for (const NodeTemplate& node : templates) slots += node.max_nodes * node.slots;
  return slots;
}

}  // namespace espalier
