#include "tuner/messages/membership.h"

#include <set>

namespace espalier {

std::optional<int> Membership::RankOf(ReplicaId replica) const {
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].replica == replica) return static_cast<int>(i);
  }
  return std::nullopt;
}

int Membership::Nodes() const {
  std::set<NodeId> nodes;
  for (const Member& m : members) nodes.insert(m.node);
  return static_cast<int>(nodes.size());
}

}  // namespace espalier
