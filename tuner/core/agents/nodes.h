#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tuner/core/agents/node_events.h"
#include "tuner/core/agents/replica_watch.h"
#include "tuner/core/checkpoints/checkpoints.h"
#include "tuner/core/client_slots/client_slot_desk.h"
#include "tuner/core/groups/groups.h"
#include "tuner/core/groups/joins.h"
#include "tuner/core/pool/node_view.h"
#include "tuner/core/pool/pool_state.h"
#include "tuner/core/state/turn.h"
#include "tuner/core/trials/trials.h"

namespace espalier {

// The nodes of the pool: how their agents come, go and come back, what is left of the groups on
// them then, and how a node is emptied that is to go away. One owner.
class Nodes {
 public:
  Nodes(Turn& turn, PoolState& pool, const CoreOptions& options, const CheckpointCopies& copies,
        Joins& joins, Groups& groups, LaunchedGroups& launched, Trials& trials,
        Checkpoints& checkpoints, ClientSlotDesk& client_slots, ReplicaWatch& watch)
      : turn_(turn),
        pool_(pool),
        options_(options),
        copies_(copies),
        joins_(joins),
        groups_(groups),
        launched_(launched),
        trials_(trials),
        checkpoints_(checkpoints),
        client_slots_(client_slots),
        watch_(watch) {}

  // The agent of a new node, or of one that comes back. Refused: see the reply.
  void Join(const AgentHello& event);
  void On(const AgentLeaving& event);
  void On(const AgentSlots& event);
  void On(const AgentGone& event);
  void On(const DrainNode& event);

  // ---- phases of a step
  // Declares nodes lost when their agents have been away for too long, and waits no longer than
  // that for nodes from before a restart.
  void CheckLeases();
  // Empties nodes that will go away.
  void CheckDrains();
  std::optional<Time> Next() const;

  // Whether the trial's time on the node is over, since that goes away.
  bool MustLeave(NodeId id, TrialId trial) const;
  std::vector<NodeView> Views() const;

 private:
  NodeId NodeOf(const std::string& name);
  bool BringsSlots(NodeId id, const AgentHello& event) const;
  void TakeNode(NodeId id, const AgentHello& event);
  void LoseReplicas(const std::vector<Replica>& lost);
  void LoseUnlisted(NodeId id, const std::vector<LiveReplica>& replicas);
  bool TakeReplica(NodeId id, const LiveReplica& live);
  void AdoptReplica(Replica replica, const LiveReplica& live);
  void TryRecover(TrialId id);
  void LoseNode(NodeId id);
  void PlanNothingNewOn(NodeId id);
  void EmptyNode(const Node& node);
  void LeaveNode(TrialId id, const Node& node);
  // When the trial's replicas there are told to leave at the latest; none: no such moment is known.
  std::optional<Time> LeaveBy(NodeId id, TrialId trial) const;

  Turn& turn_;
  PoolState& pool_;
  const CoreOptions& options_;
  const CheckpointCopies& copies_;
  Joins& joins_;
  Groups& groups_;
  LaunchedGroups& launched_;
  Trials& trials_;
  Checkpoints& checkpoints_;
  ClientSlotDesk& client_slots_;
  ReplicaWatch& watch_;
  NodeEvents events_{turn_};
  std::set<NodeId> away_;   // not connected
  std::set<NodeId> heard_;  // that have said Hello to this core
};

}  // namespace espalier
