#include "tuner/core/pool/engine_nodes.h"

#include <cstdint>

#include "absl/strings/numbers.h"

namespace espalier {

bool IsEngineNode(std::string_view name) {
  if (!name.starts_with(kEngineNode)) return false;
  name.remove_prefix(kEngineNode.size());
  std::int64_t number = 0;
  return absl::SimpleAtoi(absl::string_view(name.data(), name.size()), &number) && number > 0;
}

int SlotsOfOtherNodes(const PoolState& pool) {
  int slots = 0;
  for (const auto& [id, node] : pool.nodes) slots += IsEngineNode(node.name) ? 0 : node.slots;
  return slots;
}

int MostSlots(const PoolState& pool, const NodeTemplate& node) {
  return SlotsOfOtherNodes(pool) + node.max_nodes * node.slots;
}

}  // namespace espalier
