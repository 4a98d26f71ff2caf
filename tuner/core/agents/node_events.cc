#include "tuner/core/agents/node_events.h"

#include <utility>

namespace espalier {

namespace {

NodeTerms TermsOf(const Node& node, Time since) {
  return {.since = since,
          .slots = node.slots,
          .gpu_type = node.gpu_type,
          .spot = node.spot,
          .price_per_hour = node.price_per_hour};
}

}  // namespace

NodeEvents::NodeEvents(Turn& turn) : turn_(turn) {
  for (const NodeSeen& event : turn.state().node_events) {
    if (event.up) {
      up_[event.id] = event.terms;
    } else {
      up_.erase(event.id);
    }
  }
  for (const auto& [id, terms] : up_) missing_.insert(id);
}

void NodeEvents::Came(const Node& node) {
  missing_.erase(node.id);
  const NodeTerms terms = TermsOf(node, turn_.now());
  const auto known = up_.find(node.id);
  if (known != up_.end()) {
    NodeTerms former = known->second;
    former.since = terms.since;
    if (former == terms) return;
  }
  up_[node.id] = terms;
  turn_.Emit(NodeSeen{.id = node.id, .up = true, .terms = terms});
}

void NodeEvents::Went(const Node& node, const std::string& why) {
  up_.erase(node.id);
  WriteThatItWent(node.id, TermsOf(node, turn_.now()), why);
}

void NodeEvents::EndRecovery() {
  for (const NodeId id : std::exchange(missing_, {})) {
    NodeTerms terms = std::move(up_.at(id));
    up_.erase(id);
    terms.since = turn_.now();
    WriteThatItWent(id, std::move(terms), "it has not come back since the service was restarted");
  }
}

void NodeEvents::WriteThatItWent(NodeId id, NodeTerms terms, const std::string& why) {
  turn_.Emit(NodeSeen{.id = id, .up = false, .terms = std::move(terms), .why = why});
}

}  // namespace espalier
