#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"

namespace espalier {

// One replica of a group.
struct Member {
  ReplicaId replica;
  NodeId node;
  std::string address;  // host:port of its rendezvous

  friend bool operator==(const Member&, const Member&) = default;
};

// The group of a trial as the service wants it. A replica obeys the highest generation it has
// seen: one that is not a member leaves, and without any member the trial pauses.
struct Membership {
  std::int64_t generation = 0;  // 0: none yet
  std::vector<Member> members;  // by rank
  bool abandon = false;         // do not wait for a step boundary: the present group is broken
  // The secret by which members of this generation know one another, which only they, their agents
  // and the service know. It must not be shown, logged or stored. Empty: the service gives none.
  std::string secret{};

  std::optional<int> RankOf(ReplicaId replica) const;
  int Nodes() const;  // distinct nodes among the members

  friend bool operator==(const Membership&, const Membership&) = default;
};

// What a replica that has left its group is told when it is wanted again.
struct Adoption {
  ReplicaId replica;       // its id from now on
  std::string checkpoint;  // the trial's newest; empty: none

  friend bool operator==(const Adoption&, const Adoption&) = default;
};

}  // namespace espalier
