// Where it makes no difference to how the pool is divided, a trial that starts does so where its
// checkpoint lies: nothing need be fetched.

#include <algorithm>
#include <set>
#include <utility>

#include "tuner/core/scheduling/scheduler.h"

namespace espalier {

namespace {

// A trial that is to begin on one node.
struct Start {
  AllocationDecision* decision = nullptr;
  std::set<NodeId> holders;

  NodeId node() const { return decision->placement.begin()->first; }
  int slots() const { return decision->placement.begin()->second; }
  bool content() const { return holders.empty() || holders.contains(node()); }
  void MoveTo(NodeId to) { decision->placement = {{to, slots()}}; }
};

bool Alike(const NodeCapacity& a, const NodeCapacity& b) {
  return a.gpu_type == b.gpu_type && a.spot == b.spot && !a.draining && !b.draining;
}

}  // namespace

std::vector<AllocationDecision> Scheduler::HoldersFirst(
    std::vector<AllocationDecision> decisions) const {
  std::vector<Start> starts;
  for (AllocationDecision& decision : decisions) {
    if (pool_.groups.contains(decision.trial) || decision.placement.size() != 1) continue;
    starts.push_back({&decision, copies_.OwnCopiesOf(turn_.state().trials.at(decision.trial))});
  }
  if (std::all_of(starts.begin(), starts.end(), [](const Start& s) { return s.content(); })) {
    return decisions;
  }
  std::map<NodeId, NodeCapacity> nodes;
  for (NodeCapacity& node : view_.Capacities()) nodes.emplace(node.id, std::move(node));
  std::map<NodeId, int> left;
  for (const auto& [id, node] : nodes) left[id] = node.slots;
  std::map<TrialId, const Placement*> planned;
  for (const auto& [id, group] : pool_.groups) planned[id] = &group.target;
  for (const AllocationDecision& decision : decisions) {
    planned[decision.trial] = &decision.placement;
  }
  for (const auto& [id, placement] : planned) {
    for (const auto& [node, slots] : *placement) left[node] -= slots;
  }
  const auto go = [&](Start& start, NodeId to) {
    const NodeId from = start.node();
    if (!nodes.contains(from) || !nodes.contains(to) || !Alike(nodes.at(from), nodes.at(to))) {
      return false;
    }
    // The two nodes change places: what is left in the pool is the same.
    if (left[to] == left[from] + start.slots()) {
      std::swap(left[to], left[from]);
      start.MoveTo(to);
      return true;
    }
    for (Start& other : starts) {
      if (other.node() != to || other.slots() != start.slots()) continue;
      if (other.holders.contains(to) && !other.holders.contains(from)) continue;
      other.MoveTo(from);
      start.MoveTo(to);
      return true;
    }
    return false;
  };
  for (Start& start : starts) {
    if (start.content()) continue;
    [[maybe_unused]] const bool gone =
        std::any_of(start.holders.begin(), start.holders.end(),
                    [&](NodeId holder) { return go(start, holder); });
  }
  return decisions;
}

}  // namespace espalier
