#include "tuner/core/pool/contacts.h"

#include <algorithm>
#include <cmath>

namespace espalier {

void NodeFaults::Note(Time now, NodeFault fault) {
  NodeFault& known = faults_[PairOf(fault.from, fault.to)];
  // Both sides say so in turn, and say it again: that is one time.
  const bool again = known.times == 0 || known.until <= now;
  fault.times = known.times + (again ? 1 : 0);
  fault.at = now;
  fault.until = again ? After(now, std::min(kApartMost_s, kApart_s * std::exp2(fault.times - 1)))
                      : known.until;
  known = std::move(fault);
}

void NodeFaults::WorkTogether(const std::set<NodeId>& nodes) {
  std::erase_if(faults_, [&nodes](const auto& entry) {
    return nodes.contains(entry.first.first) && nodes.contains(entry.first.second);
  });
}

void NodeFaults::ForgetThoseOf(NodeId node) {
  std::erase_if(faults_, [node](const auto& entry) {
    return entry.first.first == node || entry.first.second == node;
  });
}

std::set<NodePair> NodeFaults::Apart(Time now) const {
  std::set<NodePair> apart;
  for (const auto& [pair, fault] : faults_) {
    if (fault.until > now) apart.insert(pair);
  }
  return apart;
}

std::vector<NodeFault> NodeFaults::Present(Time now) const {
  std::vector<NodeFault> present;
  for (const auto& [pair, fault] : faults_) {
    if (fault.until > now) present.push_back(fault);
  }
  return present;
}

bool OutOfReach(Contact contact) {
  return contact == Contact::kRefused || contact == Contact::kSilent;
}

ReplicaPair PairOf(ReplicaId a, ReplicaId b) {
  return a < b ? ReplicaPair{a, b} : ReplicaPair{b, a};
}

std::vector<ReplicaId> WhoGoesOn(const std::vector<GroupMember>& members,
                                 const std::set<ReplicaPair>& cut) {
  std::int64_t furthest = 0;
  for (const GroupMember& member : members) furthest = std::max(furthest, member.generation);
  std::vector<GroupMember> order = members;
  std::stable_sort(order.begin(), order.end(), [](const GroupMember& a, const GroupMember& b) {
    return a.generation > b.generation;
  });
  // From each member on, whoever reaches all that were taken before. That finds the largest set
  // where reach is an equivalence, as with a broken node or a parted network.
  std::set<ReplicaId> best;
  std::pair<std::size_t, std::size_t> best_counts;
  for (const GroupMember& first : order) {
    std::set<ReplicaId> taken = {first.replica};
    std::size_t far = first.generation == furthest ? 1 : 0;
    for (const GroupMember& next : order) {
      if (taken.contains(next.replica)) continue;
      const bool reaches = std::none_of(taken.begin(), taken.end(), [&](ReplicaId other) {
        return cut.contains(PairOf(next.replica, other));
      });
      if (!reaches) continue;
      taken.insert(next.replica);
      far += next.generation == furthest ? 1 : 0;
    }
    const std::pair counts(far, taken.size());
    if (counts > best_counts) {
      best_counts = counts;
      best = std::move(taken);
    }
  }
  std::vector<ReplicaId> by_rank;
  for (const GroupMember& member : members) {
    if (best.contains(member.replica)) by_rank.push_back(member.replica);
  }
  return by_rank;
}

}  // namespace espalier
