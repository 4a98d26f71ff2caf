#pragma once

#include <cstdint>
#include <vector>

#include "tuner/core/estimates/speeds.h"
#include "tuner/core/pool/checkpoint_copies.h"
#include "tuner/core/pool/pool_state.h"
#include "tuner/core/state/turn.h"

namespace espalier {

// The place of a replica among those that start the ranks of its trial on several nodes.
struct NodeOfRanks {
  std::vector<int> ranks_of_nodes{};  // empty: it is no such replica
  int node_rank = 0;
};

// How the replicas of a trial are started, formed into a group and stopped: the commands and what
// goes with them. Its callers decide what a loss means for the trial, and which replicas should be
// in its group. One owner.
class Groups {
 public:
  Groups(Turn& turn, PoolState& pool, const CoreOptions& options, const CheckpointCopies& copies,
         const Speeds& speeds)
      : turn_(turn),
        pool_(pool),
        options_(options),
        copies_(copies),
        speeds_(speeds),
        next_replica_(turn.state().replica_ids_below) {}

  // Starts a replica on a free slot. Requires a group of the trial, which plans it there.
  ReplicaId StartReplica(const Trial& trial, NodeId node, int slot,
                         std::vector<int> more_slots = {}, const NodeOfRanks& ranks = {});
  // Tells its agent to end the process, which has `grace_s` to end by itself.
  void StopReplica(Replica& replica, double grace_s);
  // Ends the process of a trial that goes on elsewhere or later. Where its program asks whether to
  // save, it is told so when it asks next, and has the time of a pause before it is stopped.
  void SeeOff(Replica& replica, double grace_s);
  // A process with this id exists, which an agent has brought along: new ones get higher ids.
  void NoteReplica(ReplicaId id) { next_replica_ = std::max(next_replica_, id.value + 1); }

  // Tells these replicas, by rank, to form the trial's next group, and members that are not among
  // them to leave. Requires one at least. `abandon`: at once, without waiting for the end of a step
  // that may never come. `after_loss`: because a member was lost.
  void Regroup(TrialId id, std::vector<ReplicaId> members, bool abandon, bool after_loss);
  // All members have said that they are in the newest group.
  void FinishForming(TrialId id);

  TrialTimeouts TimeoutsOf(const Trial& trial) const;
  // Seconds without progress after which a group that forms is told again: a group changes between
  // two steps, and the one under way may be a long one.
  double StallOf(TrialId id) const;
  bool Stalls(TrialId id, const Group& group) const;
  // How far the group is between two steps, by the member that has most to do.
  ReplicaForming FormingOf(TrialId id, const Group& group) const;
  // What the group trains with and how fast. Requires that it has told its progress.
  TrainingFigures FiguresOf(TrialId id, const Group& group) const;
  // Finite; 0: unknown.
  static float GoodputIn(const TrainingFigures& figures);

 private:
  ReplicaId NewReplicaId();

  Turn& turn_;
  PoolState& pool_;
  const CoreOptions& options_;
  const CheckpointCopies& copies_;
  const Speeds& speeds_;
  std::int64_t next_replica_;
};

}  // namespace espalier
