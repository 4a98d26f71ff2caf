#pragma once

#include <map>
#include <set>
#include <string>

#include "tuner/core/pool/pool_state.h"
#include "tuner/core/state/turn.h"

namespace espalier {

// Writes down when nodes come and go, so that a view of the past can show where a node was absent.
// A node whose agent is away for less than its lease has not gone, and neither have those that come
// back soon after a restart of the service. One owner.
class NodeEvents {
 public:
  explicit NodeEvents(Turn& turn);

  // The node is there. Nothing is written if it was, and was the same.
  void Came(const Node& node);
  void Went(const Node& node, const std::string& why);
  // No node from before a restart is waited for any longer.
  void EndRecovery();
  // Whether there are such nodes that have not come back yet.
  bool waits() const { return !missing_.empty(); }

 private:
  void WriteThatItWent(NodeId id, NodeTerms terms, const std::string& why);

  Turn& turn_;
  std::map<NodeId, NodeTerms> up_;  // by the newest event of each
  std::set<NodeId> missing_;
};

}  // namespace espalier
