// Agents come, go, and come back.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tuner/core/core_impl.h"

namespace espalier {

void Core::Impl::On(const AgentHello& event) {
  if (event.slots < 1 || event.node_name.empty()) {
    turn_.reply().status = absl::InvalidArgumentError(absl::StrCat(
        "node \"", event.node_name, "\" needs a name and at least 1 slot, got ", event.slots));
    return;
  }
  if (absl::Status shared = CheckSharedFolder(event); !shared.ok()) {
    turn_.reply().status = std::move(shared);
    return;
  }
  NodeId id;
  for (const auto& [node_id, name] : turn_.state().nodes) {
    if (name == event.node_name) id = node_id;
  }
  if (!id) {
    id = NodeId(turn_.state().nodes.empty() ? 1 : turn_.state().nodes.rbegin()->first.value + 1);
    turn_.Emit(NodeRegistered{id, event.node_name});
  }
  Node& node = pool_.nodes[id];
  away_.erase(id);
  const bool drained = node.draining;
  const bool releasing = node.releasing;
  if (pool_sizer_) pool_sizer_->NodeCame(event.node_name);
  node = {id,
          event.node_name,
          event.slots,
          true,
          std::nullopt,
          event.gpu_type,
          event.spot,
          event.price_per_hour,
          event.leaves_in_s.has_value(),
          {},
          drained,
          {},
          {},
          releasing,
          {},
          event.checkpoints.has_value(),
          event.shared_folder};
  if (event.leaves_in_s) node.leaves = After(turn_.now(), std::max(0.0, *event.leaves_in_s));
  pool_.UpdateDrain(node, "its agent says that it goes away");
  heard_.insert(id);
  pool_.faults.ForgetThoseOf(id);
  turn_.reply().content = NodeReply{id};
  turn_.Wake();

  client_slots_.GiveBackOn(id, event.slots,
                           absl::StrCat("node ", event.node_name, " has fewer slots"));

  std::set<ReplicaId> listed;
  for (const LiveReplica& live : event.replicas) listed.insert(live.replica);

  // Processes the core counts on and the agent does not have: their start or end was lost.
  std::vector<Replica> missing;
  for (const auto& [replica_id, replica] : pool_.replicas) {
    if (replica.node == id && !listed.contains(replica_id)) missing.push_back(replica);
  }
  for (const Replica& replica : missing) {
    pool_.replicas.erase(replica.id);
    pool_.SlotsChange(replica.trial);
    ReplicaGone(replica, {replica.id, -1, 0, "", ""}, /*node_lost=*/true);
  }

  std::set<TrialId> regroup;
  for (const LiveReplica& live : event.replicas) {
    next_replica_ = std::max(next_replica_, live.replica.value + 1);
    const auto trial = turn_.state().trials.find(live.trial);
    if (const auto known = pool_.replicas.find(live.replica); known != pool_.replicas.end()) {
      if (known->second.node != id) continue;  // another agent's: this one does not speak for it
      // Commands may have been lost on the way: bring its group to a known generation.
      const auto group = pool_.groups.find(live.trial);
      if (known->second.stopping) {
        StopReplica(known->second, known->second.grace_s);
      } else if (group != pool_.groups.end() && group->second.forming) {
        regroup.insert(live.trial);
      }
      if (live.ready && !known->second.ready) Hear(known->second, *live.ready);
      continue;
    }
    // A client got the slot when this replica's exit had been reported.
    if (pool_.held_by_clients.contains({id, live.slot})) {
      turn_.Send(StopReplicaCommand{id, live.replica, 0});
      continue;
    }
    const bool wanted = trial != turn_.state().trials.end() &&
                        pool_.recovering.contains(live.trial) &&
                        trial->second.state == TrialState::kRunning;
    if (!wanted) {
      // Of an ended or lost trial: a leftover. Its slot stays taken until it is gone.
      Replica leftover(live.replica, live.trial, id, live.slot);
      if (trial == turn_.state().trials.end()) {
        turn_.Send(StopReplicaCommand{id, live.replica, 0});
        continue;
      }
      auto [it, inserted] = pool_.replicas.emplace(live.replica, std::move(leftover));
      pool_.SlotsChange(live.trial);
      StopReplica(it->second, 0);
      continue;
    }
    Replica adopted(live.replica, live.trial, id, live.slot);
    adopted.generation = live.generation;
    adopted.started_from = live.started_from;
    Group& group = pool_.groups[live.trial];
    group.target[id] += 1;
    pool_.reconcile.insert(live.trial);
    if (live.ready) {
      adopted.ready = true;
      adopted.address = live.ready->address;
      group.elastic = true;
      group.batch = live.ready->batch;
      group.total_steps = live.ready->total_steps;
    }
    pool_.replicas.emplace(live.replica, std::move(adopted));
    pool_.SlotsChange(live.trial);
  }
  pool_.ForgetPlansFor(id);
  TakeHeldCheckpoints(id, event);
  for (const TrialId trial : regroup) {
    Regroup(trial, std::vector<ReplicaId>(pool_.groups.at(trial).members), /*abandon=*/true,
            pool_.groups.at(trial).after_loss);
  }
  for (const TrialId trial : std::set<TrialId>(pool_.recovering)) {
    const auto& spans = turn_.TrialAt(trial).spans;
    const bool all_heard =
        spans.empty() || spans.back().to != Time{} ||
        std::all_of(spans.back().slots.begin(), spans.back().slots.end(),
                    [this](const Slot& slot) { return heard_.contains(slot.node); });
    if (all_heard) TryRecover(trial);
  }
}

// The agents of a trial have all been heard, or had their time: what is left of it?
void Core::Impl::TryRecover(TrialId id) {
  pool_.recovering.erase(id);
  const Trial& trial = turn_.TrialAt(id);
  pool_.SlotsChange(id);
  turn_.Wake();
  if (trial.state != TrialState::kRunning) return;  // only its slots were still to be given back
  Group& group = pool_.groups[id];
  std::vector<const Replica*> ready;
  for (const Replica* replica : pool_.ReplicasOf(id)) {
    if (replica->ready) ready.push_back(replica);
  }
  if (pool_.ReplicasOf(id).empty()) {
    GroupLost(id, {ReplicaId{}, -1, 0, "", ""}, /*not_its_fault=*/true);
    return;
  }
  // Those who have left long ago, and were not told, are no group (Reconcile ends them).
  if (!ready.empty() && (trial.checkpoint.empty() || HasSource(id))) {
    // Nobody knows which commands arrived before the crash: a new generation for all of them.
    // The furthest goes first, so that what it knows is passed on.
    std::stable_sort(ready.begin(), ready.end(), [](const Replica* a, const Replica* b) {
      return a->generation > b->generation;
    });
    std::vector<ReplicaId> members;
    for (const Replica* replica : ready) members.push_back(replica->id);
    group.members = members;
    Regroup(id, std::move(members), /*abandon=*/true, /*after_loss=*/true);
  }
  if (turn_.StudyAt(trial.study).state != StudyState::kRunning)
    PauseTrial(id, "its study was stopped");
}

void Core::Impl::On(const AgentGone& event) {
  const auto it = pool_.nodes.find(event.node);
  if (it == pool_.nodes.end() || !it->second.connected) return;
  it->second.connected = false;
  LookAfterAllCheckpoints();
  // Of a node that was to go and holds nothing, nobody needs to come back.
  const bool empty = pool_.SlotsHeldOn(event.node) == 0;
  away_.insert(event.node);
  it->second.lease_ends = (it->second.leaving || it->second.releasing) && empty
                              ? turn_.now()
                              : After(turn_.now(), options_.lease_s);
}

void Core::Impl::LoseNode(NodeId id) {
  client_slots_.GiveBackOn(id, 0, absl::StrCat("node ", pool_.nodes.at(id).name, " was lost"));
  pool_.nodes.erase(id);
  away_.erase(id);
  pool_.draining.erase(id);
  keeping_.ForgetOrdersTo(id);
  LookAfterAllCheckpoints();
  pool_.ForgetPlansFor(id);
  std::vector<Replica> lost;
  for (const auto& [replica_id, replica] : pool_.replicas) {
    if (replica.node == id) lost.push_back(replica);
  }
  for (const Replica& replica : lost) {
    pool_.replicas.erase(replica.id);
    pool_.SlotsChange(replica.trial);
    ReplicaGone(replica, {replica.id, -1, 0, "", ""}, /*node_lost=*/true);
  }
  turn_.Wake();
}

}  // namespace espalier
