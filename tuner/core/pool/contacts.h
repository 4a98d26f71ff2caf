#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "allocator/pool/islands.h"
#include "base/clock.h"
#include "base/ids.h"
#include "tuner/messages/replica_messages.h"

namespace espalier {

// Replicas of one node found those of the other out of reach.
struct NodeFault {
  NodeId from;          // of the replica that tried
  NodeId to;            // of the one that it tried to reach
  std::string address;  // where
  Contact contact = Contact::kUnknown;
  std::string error;  // the system's error text
  Time at;            // the last time
  Time until;         // the allocator keeps the two apart until then
  int times = 0;      // that it was found since the two last worked together
};

// The pairs of nodes that cannot reach one another, as far as groups that did not form have shown.
// Not stored: after a restart of the service it is found out again, at the price of one attempt.
//
// A pair is forgotten when a group forms across it, and when the agent of either says Hello anew:
// it may have another address, or a network that works. Without that it is tried again after
// kApart_s, and after twice as long each time that it fails again, up to kApartMost_s.
class NodeFaults {
 public:
  static constexpr double kApart_s = 600;
  static constexpr double kApartMost_s = 86'400;

  // `fault.until` and `fault.times` are filled in.
  void Note(Time now, NodeFault fault);
  void WorkTogether(const std::set<NodeId>& nodes);
  void ForgetThoseOf(NodeId node);

  std::set<NodePair> Apart(Time now) const;
  std::vector<NodeFault> Present(Time now) const;

 private:
  std::map<NodePair, NodeFault> faults_;
};

// Whether the attempt shows that the way between the two machines is closed. (That a process does
// not answer on a connection that its machine took says something of the process.)
bool OutOfReach(Contact contact);

// A member of a group, and the last generation that it trained in; 0: none, it is to join.
struct GroupMember {
  ReplicaId replica;
  std::int64_t generation = 0;
};
using ReplicaPair = std::pair<ReplicaId, ReplicaId>;  // the lower id first
ReplicaPair PairOf(ReplicaId a, ReplicaId b);

// The members (by rank) that go on when some pairs of them are out of reach: those that all reach
// one another, with as many as possible of those that are furthest; then as many as possible; then
// those of the first ranks. Joiners give way to members that train, never the other way round.
std::vector<ReplicaId> WhoGoesOn(const std::vector<GroupMember>& members,
                                 const std::set<ReplicaPair>& cut);

}  // namespace espalier
