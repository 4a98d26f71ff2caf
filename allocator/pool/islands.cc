#include "allocator/pool/islands.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>

namespace espalier {

namespace {

// The nodes in sets that are not to be parted: by trials that span them.
std::vector<std::set<NodeId>> Together(const Pool& pool) {
  std::map<NodeId, std::size_t> set_of;
  std::vector<std::set<NodeId>> sets;
  std::vector<NodeId> ids;
  for (const NodeCapacity& node : pool.nodes) ids.push_back(node.id);
  std::sort(ids.begin(), ids.end());
  for (const NodeId id : ids) {
    set_of.emplace(id, sets.size());
    sets.push_back({id});
  }
  for (const Job& job : pool.jobs) {
    std::size_t first = sets.size();
    for (const auto& [node, slots] : job.current) {
      const auto known = set_of.find(node);
      if (known == set_of.end()) continue;
      const std::size_t other = known->second;
      if (first == sets.size()) first = other;
      if (other == first) continue;
      const auto [into, from] = std::minmax(first, other);
      for (const NodeId moved : sets[from]) set_of[moved] = into;
      sets[into].merge(sets[from]);
      sets[from].clear();
      first = into;
    }
  }
  std::erase_if(sets, [](const std::set<NodeId>& set) { return set.empty(); });
  return sets;
}

}  // namespace

NodePair PairOf(NodeId a, NodeId b) { return a < b ? NodePair{a, b} : NodePair{b, a}; }

bool SpansAny(const Placement& placement, const std::set<NodePair>& apart) {
  return std::any_of(apart.begin(), apart.end(), [&placement](const NodePair& pair) {
    return placement.contains(pair.first) && placement.contains(pair.second);
  });
}

void AssignIslands(Pool& pool, const std::set<NodePair>& apart) {
  for (NodeCapacity& node : pool.nodes) node.island = 0;
  if (apart.empty()) return;
  std::vector<std::set<NodeId>> sets = Together(pool);
  const auto pairs_of = [&apart](const std::set<NodeId>& set) {
    return std::count_if(apart.begin(), apart.end(), [&set](const NodePair& pair) {
      return set.contains(pair.first) != set.contains(pair.second);
    });
  };
  // Sorted by their first nodes already.
  std::stable_sort(sets.begin(), sets.end(),
                   [&](const auto& a, const auto& b) { return pairs_of(a) < pairs_of(b); });
  std::vector<std::set<NodeId>> islands;
  for (const std::set<NodeId>& set : sets) {
    const auto room = std::find_if(islands.begin(), islands.end(), [&](const auto& island) {
      return std::none_of(set.begin(), set.end(), [&](NodeId node) {
        return std::any_of(island.begin(), island.end(),
                           [&](NodeId other) { return apart.contains(PairOf(node, other)); });
      });
    });
    if (room == islands.end()) {
      islands.push_back(set);
    } else {
      room->insert(set.begin(), set.end());
    }
  }
  for (NodeCapacity& node : pool.nodes) {
    const auto island = std::find_if(islands.begin(), islands.end(),
                                     [&node](const auto& i) { return i.contains(node.id); });
    node.island = static_cast<int>(island - islands.begin());
  }
}

}  // namespace espalier
