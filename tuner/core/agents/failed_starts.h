#pragma once

#include <map>
#include <set>
#include <string>

#include "base/clock.h"
#include "tuner/core/pool/pool_state.h"
#include "tuner/core/state/change.h"
#include "tuner/core/state/turn.h"

namespace espalier {

// Replicas that their agent could not start. What a node lacks, such as room on its disk, is no
// failure of a trial: the trial is started elsewhere, or waits, and the node gets nothing new for a
// while, which is longer each time in a row. Its replicas run on. One owner.
class FailedStarts {
 public:
  FailedStarts(Turn& turn, PoolState& pool) : turn_(turn), pool_(pool) {}

  void Observe(const Change& change);

  void Started(const Replica& replica);
  // The replica could not be started. Where that is its node's doing, the node's free slots cannot
  // be used for a while. It is where the agent says so, and where the program may be missing there
  // alone: other nodes have started it, or have not tried.
  void Failed(const Replica& gone, const ReplicaExited& exit);

 private:
  // Where replicas of a study were started, and where in vain since.
  struct Places {
    std::set<NodeId> good;
    std::set<NodeId> bad;
  };

  struct Hold {
    int in_a_row = 0;
    Time until;
    std::string why;
  };

  bool MayStartElsewhere(const Places& places) const;
  void HoldBack(const Replica& gone, const std::string& error);

  Turn& turn_;
  PoolState& pool_;
  std::map<StudyId, Places> places_;
  std::map<NodeId, Hold> holds_;  // of nodes that have started nothing since
};

}  // namespace espalier
