#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tuner/core/groups/groups.h"
#include "tuner/core/pool/pool_state.h"
#include "tuner/core/state/turn.h"

namespace espalier {

// Where the first processes of a group start, and with how many slots there: of a study with a
// launcher on all nodes that it is planned on, of any other on the one with most of them. Empty:
// nowhere.
Placement FirstPlacesOf(const PoolState& pool, const Study& study, const Group& group);

// Where the ranks of a trial of the study would have to be on several nodes of this pool: those
// whose agents are of an older release, which cannot start a share of them. While there are any,
// its trials do not begin.
std::vector<NodeId> NodesTooOldFor(const StudySpec& spec, const PoolState& pool);

// The ranks of a launcher that are on several nodes, one replica a node. They start when all of
// them wait to be told where they meet, and end together, as one. One owner.
class LaunchedGroups {
 public:
  LaunchedGroups(Turn& turn, PoolState& pool, Groups& groups)
      : turn_(turn), pool_(pool), groups_(groups) {}

  // Starts a replica on each node of `places`, which are several, if all that it is to have is
  // free. False: it is not.
  bool Start(const Trial& trial, const Placement& places);
  // After a restart of the service: what is left of a trial that was on these nodes.
  void TakeUp(TrialId id, std::set<NodeId> nodes);

  void Hear(Replica& from, const RanksWait& message);
  void Hear(const Replica& from, const RanksFailed& message);
  void Hear(const Replica& from, const RanksLeft& message);

  // What its last replica's end means for the trial: as if that one had been all of it.
  struct TrialEnd {
    Replica replica;
    ReplicaExited exit;
    std::string lost_with;  // the node that it was lost with; empty: it was not
  };
  // One of several replicas is gone. nullopt: others are still to end.
  std::optional<TrialEnd> Gone(const Replica& gone, const ReplicaExited& exit, bool node_lost);
  // The others have run on for too long after one had ended well.
  void EndThoseLate(TrialId id);

 private:
  void TellWhereToMeet(const Group& group);
  void StopOthers(TrialId id);
  double Apart_s(const Trial& trial) const;

  Turn& turn_;
  PoolState& pool_;
  Groups& groups_;
};

}  // namespace espalier
