#pragma once

#include <set>
#include <vector>

#include "tuner/core/agents/nodes.h"
#include "tuner/core/checkpoints/checkpoints.h"
#include "tuner/core/groups/groups.h"
#include "tuner/core/groups/joins.h"
#include "tuner/core/groups/launched_groups.h"
#include "tuner/core/pool/pool_state.h"
#include "tuner/core/state/turn.h"

namespace espalier {

// The steps from the replicas that a trial has to those that are planned for it.
class Reconciler {
 public:
  Reconciler(Turn& turn, PoolState& pool, const CheckpointCopies& copies, const Joins& joins,
             Groups& groups, LaunchedGroups& launched, Checkpoints& checkpoints, const Nodes& nodes)
      : turn_(turn),
        pool_(pool),
        copies_(copies),
        joins_(joins),
        groups_(groups),
        launched_(launched),
        checkpoints_(checkpoints),
        nodes_(nodes) {}

  // One step for each trial that may not have what it should.
  void ReconcileAll();

 private:
  void Reconcile(TrialId id);
  bool HasWhatItShould(TrialId id) const;
  std::set<ReplicaId> Surplus(const Group& group, const std::vector<Replica*>& live) const;
  void StartJoiners(const Trial& trial, const Group& group, const std::vector<Replica*>& live);
  void StartFirst(const Trial& trial, const Group& group);
  bool RestartForSize(const Trial& trial, Group& group, const std::vector<Replica*>& live);
  bool HasItsSlots(const Trial& trial, const Placement& wanted) const;
  bool AreFree(const Trial& trial, const Placement& places) const;
  void NoteRunning(const Trial& trial);
  void StartOn(const Trial& trial, NodeId node, int slot, std::vector<int> more_slots = {});
  std::vector<ReplicaId> WantedMembers(TrialId id, const std::vector<Replica*>& live,
                                       const std::set<ReplicaId>& surplus) const;
  void KeepASource(TrialId id, std::vector<ReplicaId>& wanted) const;

  Turn& turn_;
  PoolState& pool_;
  const CheckpointCopies& copies_;
  const Joins& joins_;
  Groups& groups_;
  LaunchedGroups& launched_;
  Checkpoints& checkpoints_;
  const Nodes& nodes_;
};

}  // namespace espalier
