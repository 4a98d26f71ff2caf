// Where requests of clients fit.

#include <algorithm>
#include <map>
#include <tuple>

#include "tuner/core/client_slots/client_slots.h"

namespace espalier {

namespace {

using Room = int ClientNode::*;

// The nodes it may be on.
std::vector<const ClientNode*> NodesFor(const ClientSlots& request,
                                        const std::vector<ClientNode>& nodes) {
  std::vector<const ClientNode*> found;
  for (const ClientNode& node : nodes) {
    if (request.node.empty() || request.node == node.name) found.push_back(&node);
  }
  return found;
}

// On several nodes of one type, those with the most room first.
std::optional<Placement> Span(int wanted, std::vector<const ClientNode*> nodes, Room room) {
  std::stable_sort(nodes.begin(), nodes.end(), [room](const ClientNode* a, const ClientNode* b) {
    return a->*room > b->*room;
  });
  std::map<std::string, Placement> by_type;
  std::map<std::string, int> missing;
  std::optional<Placement> fewest;
  for (const ClientNode* node : nodes) {
    int& left = missing.try_emplace(node->gpu_type, wanted).first->second;
    const int taken = std::min(left, node->*room);
    if (taken <= 0) continue;
    Placement& placement = by_type[node->gpu_type];
    placement[node->id] = taken;
    left -= taken;
    if (left == 0 && (!fewest || placement.size() < fewest->size())) fewest = placement;
  }
  return fewest;
}

// `before` tells which of two nodes with room for all of it is the better.
template <typename Before>
std::optional<Placement> Place(const ClientSlots& request, const std::vector<ClientNode>& all,
                               Room room, Before before) {
  std::vector<const ClientNode*> nodes = NodesFor(request, all);
  const bool one_could = std::any_of(nodes.begin(), nodes.end(), [&](const ClientNode* node) {
    return node->slots >= request.wanted;
  });
  if (!one_could) return Span(request.wanted, std::move(nodes), room);
  const ClientNode* best = nullptr;
  for (const ClientNode* node : nodes) {
    if (node->*room < request.wanted) continue;
    if (best == nullptr || before(*node, *best)) best = node;
  }
  if (best == nullptr) return std::nullopt;
  return Placement{{best->id, request.wanted}};
}

}  // namespace

std::optional<Placement> PlaceOnFree(const ClientSlots& request,
                                     const std::vector<ClientNode>& nodes) {
  return Place(request, nodes, &ClientNode::free,
               [](const ClientNode& a, const ClientNode& b) { return a.free < b.free; });
}

std::optional<Placement> PlaceOnOpen(const ClientSlots& request,
                                     const std::vector<ClientNode>& nodes) {
  const auto leave = [&request](const ClientNode& node) {
    const int to_leave = request.wanted - std::max(0, node.free);
    return std::tuple(std::max(0, to_leave - node.gives), to_leave);
  };
  return Place(request, nodes, &ClientNode::open,
               [&](const ClientNode& a, const ClientNode& b) { return leave(a) < leave(b); });
}

}  // namespace espalier
