#include "allocator/pool/slot_ledger.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace espalier {

int TotalSlots(const Placement& placement) {
  int total = 0;
  for (const auto& [node, slots] : placement) total += slots;
  return total;
}

std::vector<const Job*> InOrder(const Pool& pool) {
  std::vector<const Job*> jobs;
  for (const Job& job : pool.jobs) jobs.push_back(&job);
  std::sort(jobs.begin(), jobs.end(), [](const Job* a, const Job* b) {
    return std::tie(a->order, a->id) < std::tie(b->order, b->id);
  });
  return jobs;
}

SlotLedger::SlotLedger(const Pool& pool, bool share_spanned) : share_spanned_(share_spanned) {
  for (const NodeCapacity& node : pool.nodes) {
    nodes_[node.id] = {
        .name = NameOf(node), .kind = KindOf(node), .free = node.slots, .draining = node.draining};
    if (!node.draining) usable_ += node.slots;
  }
  std::map<NodeId, int> held;
  for (const Job& job : pool.jobs) {
    for (const auto& [id, slots] : job.current) held[id] += slots;
  }
  for (auto& [id, node] : nodes_) node.overfull = held[id] > node.free;
}

bool SlotLedger::MayKeep(const Job& job) const {
  if (job.current.empty()) return false;
  const auto first = nodes_.find(job.current.begin()->first);
  return std::all_of(job.current.begin(), job.current.end(), [&](const auto& held) {
    const auto node = nodes_.find(held.first);
    return node != nodes_.end() && held.second <= node->second.free &&
           node->second.kind == first->second.kind && (!node->second.draining || job.joining) &&
           (job.current.size() == 1 || MaySpan(node->second));
  });
}

std::string SlotLedger::Loss(const Job& job) const {
  for (const auto& [id, slots] : job.current) {
    const auto node = nodes_.find(id);
    if (node == nodes_.end()) return absl::StrCat("node ", id.value, " is lost");
    if (node->second.overfull) {
      return absl::StrCat(node->second.name, " has fewer slots than were held");
    }
    if (node->second.draining) return absl::StrCat(node->second.name, " is draining");
  }
  return "";
}

void SlotLedger::Take(const Placement& placement) {
  for (const auto& [id, slots] : placement) {
    Node& node = nodes_.at(id);
    node.free -= slots;
    if (placement.size() > 1) ++node.spanning;
  }
}

std::optional<Placement> SlotLedger::PlaceOn(int slots, const SlotKind& kind) const {
  std::vector<std::pair<int, NodeId>> most_first;  // negated free slots
  for (const auto& [id, node] : nodes_) {
    if (node.free > 0 && !node.draining && node.kind == kind) {
      most_first.emplace_back(-node.free, id);
    }
  }
  std::sort(most_first.begin(), most_first.end());
  if (!most_first.empty() && slots <= -most_first.front().first) {
    return Placement{{most_first.front().second, slots}};
  }
  Placement placement;
  for (const auto& [negated, id] : most_first) {
    if (!MaySpan(nodes_.at(id))) continue;
    const int taken = std::min(-negated, slots);
    placement[id] = taken;
    slots -= taken;
    if (slots == 0) return placement;
  }
  return std::nullopt;
}

std::optional<Placement> SlotLedger::Place(int slots) const {
  std::set<SlotKind> kinds;
  for (const auto& [id, node] : nodes_) kinds.insert(node.kind);
  std::optional<Placement> best;
  for (const SlotKind& kind : kinds) {
    auto placement = PlaceOn(slots, kind);
    if (placement && (!best || placement->size() < best->size())) best = std::move(placement);
  }
  return best;
}

}  // namespace espalier
