#include "tuner/core/agents/nodes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tuner/core/state/engine_node_names.h"

namespace espalier {

namespace {

void RecordTerms(Turn& turn, NodeId id, const AgentHello& event) {
  const NodeTerms terms{.since = turn.now(),
                        .slots = event.slots,
                        .gpu_type = event.gpu_type,
                        .spot = event.spot,
                        .price_per_hour = event.price_per_hour};
  const auto told = turn.state().node_terms.find(id);
  if (told == turn.state().node_terms.end()) {
    const bool of_template = !TemplateOf(event.node_name).value_or("").empty();
    if (!terms.spot && terms.price_per_hour == 0 && !of_template) return;
  } else {
    NodeTerms former = told->second.back();
    former.since = terms.since;
    if (former == terms) return;
  }
  turn.Emit(NodeTermsTold{id, terms});
}

std::string WhyGone(const Node& node, double lease_s) {
  if (node.released) return "the pool has given it back to its engine";
  if (node.leaving) return "its agent said that it goes away";
  return absl::StrCat("no word from its agent for ", lease_s, " s");
}

}  // namespace

void Nodes::Join(const AgentHello& event) {
  if (event.slots < 1 || event.node_name.empty()) {
    turn_.reply().status = absl::InvalidArgumentError(absl::StrCat(
        "node \"", event.node_name, "\" needs a name and at least 1 slot, got ", event.slots));
    return;
  }
  if (absl::Status shared = checkpoints_.CheckSharedFolder(event); !shared.ok()) {
    turn_.reply().status = std::move(shared);
    return;
  }
  const std::size_t known = turn_.state().nodes.size();
  const NodeId id = NodeOf(event.node_name);
  const bool more = turn_.state().nodes.size() > known || BringsSlots(id, event);
  TakeNode(id, event);
  turn_.reply().content = NodeReply{id};
  turn_.Wake();

  client_slots_.GiveBackOn(id, event.slots,
                           absl::StrCat("node ", event.node_name, " has fewer slots"));

  LoseUnlisted(id, event.replicas);
  std::set<TrialId> regroup;
  for (const LiveReplica& live : event.replicas) {
    groups_.NoteReplica(live.replica);
    if (TakeReplica(id, live)) regroup.insert(live.trial);
  }
  pool_.ForgetPlansFor(id);
  if (more) joins_.TryAgainAll(absl::StrCat("node ", event.node_name, " has joined the pool"));
  checkpoints_.TakeHeldCheckpoints(id, event);
  for (const TrialId trial : regroup) {
    groups_.Regroup(trial, std::vector<ReplicaId>(pool_.groups.at(trial).members), /*abandon=*/true,
                    pool_.groups.at(trial).after_loss);
  }
  for (const TrialId trial : std::set<TrialId>(pool_.recovering)) {
    const std::set<NodeId>& on = pool_.nodes_at_load[trial];
    if (std::all_of(on.begin(), on.end(), [this](NodeId node) { return heard_.contains(node); })) {
      TryRecover(trial);
    }
  }
}

// Whether the pool has slots by a node that it has known which it had not. Nodes that come back
// after a restart of the service are taken to have been there all the time.
bool Nodes::BringsSlots(NodeId id, const AgentHello& event) const {
  const auto node = pool_.nodes.find(id);
  return node != pool_.nodes.end() ? event.slots > node->second.slots : !pool_.recovery_ends;
}

// The id that the name has had, or has from now on.
NodeId Nodes::NodeOf(const std::string& name) {
  for (const auto& [id, known] : turn_.state().nodes) {
    if (known == name) return id;
  }
  const NodeId id(turn_.state().nodes.empty() ? 1 : turn_.state().nodes.rbegin()->first.value + 1);
  turn_.Emit(NodeRegistered{id, name});
  return id;
}

void Nodes::TakeNode(NodeId id, const AgentHello& event) {
  RecordTerms(turn_, id, event);
  Node& node = pool_.nodes[id];
  Node fresh;
  fresh.id = id;
  fresh.name = event.node_name;
  fresh.slots = event.slots;
  fresh.connected = true;
  fresh.gpu_type = event.gpu_type;
  fresh.spot = event.spot;
  fresh.price_per_hour = event.price_per_hour;
  fresh.leaving = event.leaves_in_s.has_value();
  if (fresh.leaving) fresh.leaves = After(turn_.now(), std::max(0.0, *event.leaves_in_s));
  fresh.draining = node.draining;
  fresh.releasing = node.releasing;
  fresh.gpus = event.gpus;
  fresh.spans_launches = event.spans_launches;
  fresh.clones = event.clones;
  fresh.told_unusable = node.told_unusable;
  fresh.held_back = node.held_back;
  std::erase_if(fresh.held_back, [&](const auto& held) { return held.first >= event.slots; });
  fresh.unusable = node.unusable;
  fresh.keeps_checkpoints = event.checkpoints.has_value();
  fresh.shared_folder = event.shared_folder;
  node = std::move(fresh);
  events_.Came(node);
  away_.erase(id);
  heard_.insert(id);
  pool_.UpdateDrain(node, "its agent says that it goes away");
  pool_.SetUnusable(node, event.unusable_slots);
  pool_.faults.ForgetThoseOf(id);
}

void Nodes::On(const AgentSlots& event) {
  const auto it = pool_.nodes.find(event.node);
  if (it == pool_.nodes.end()) return;
  pool_.SetUnusable(it->second, event.unusable);
  turn_.Wake();
}

// Their processes are gone, without an exit that was seen.
void Nodes::LoseReplicas(const std::vector<Replica>& lost) {
  for (const Replica& replica : lost) {
    pool_.replicas.erase(replica.id);
    pool_.SlotsChange(replica.trial);
    watch_.ReplicaGone(
        replica,
        {.replica = replica.id, .exit_code = -1, .signal = 0, .last_output = "", .error = ""},
        /*node_lost=*/true);
  }
}

// Processes that the core counts on and the agent does not have: their start or end was lost.
void Nodes::LoseUnlisted(NodeId id, const std::vector<LiveReplica>& replicas) {
  std::set<ReplicaId> listed;
  for (const LiveReplica& live : replicas) listed.insert(live.replica);
  std::vector<Replica> missing;
  for (const auto& [replica_id, replica] : pool_.replicas) {
    if (replica.node == id && !listed.contains(replica_id)) missing.push_back(replica);
  }
  LoseReplicas(missing);
}

// True: its group is to be told again, since commands may have been lost on the way.
bool Nodes::TakeReplica(NodeId id, const LiveReplica& live) {
  if (const auto known = pool_.replicas.find(live.replica); known != pool_.replicas.end()) {
    Replica& replica = known->second;
    if (replica.node != id || replica.trial != live.trial) {
      // Of another agent or trial, for which this one does not speak: the process here is of a time
      // that this service knows nothing of.
      turn_.Send(StopReplicaCommand{id, live.replica, 0});
      return false;
    }
    const auto group = pool_.groups.find(live.trial);
    bool again = false;
    if (replica.stopping) {
      groups_.StopReplica(replica, replica.grace_s);
    } else {
      again = group != pool_.groups.end() && group->second.forming;
    }
    if (live.ready && !replica.ready) watch_.Hear(replica, *live.ready);
    if (live.ranks_wait) watch_.Hear(replica, *live.ranks_wait);
    return again;
  }
  const auto trial = turn_.state().trials.find(live.trial);
  // A client got the slot when this replica's exit had been reported.
  Replica replica(live.replica, live.trial, id, live.slot);
  if (!live.ready) replica.more_slots = live.more_slots;
  const bool of_client = std::any_of(
      pool_.held_by_clients.begin(), pool_.held_by_clients.end(),
      [&](const auto& held) { return held.first.node == id && replica.Holds(held.first.index); });
  if (of_client || trial == turn_.state().trials.end()) {
    turn_.Send(StopReplicaCommand{id, live.replica, 0});
    return false;
  }
  if (!pool_.recovering.contains(live.trial) || trial->second.state != TrialState::kRunning ||
      live.replica.value < turn_.state().replica_ids_from) {
    // It is left over from an ended or lost trial, or from the time before a restore. Its slot
    // stays taken until it is gone.
    const auto [it, inserted] = pool_.replicas.emplace(live.replica, std::move(replica));
    pool_.SlotsChange(live.trial);
    groups_.StopReplica(it->second, 0);
    return false;
  }
  AdoptReplica(std::move(replica), live);
  return false;
}

// The replica is of a trial that this service has taken up, and that runs.
void Nodes::AdoptReplica(Replica replica, const LiveReplica& live) {
  replica.generation = live.generation;
  replica.started_from = live.started_from;
  if (live.ranks_wait) {
    replica.ranks_wait = true;
    replica.address = live.ranks_wait->address;
  }
  Group& group = pool_.groups[live.trial];
  group.target[replica.node] += replica.slots();
  pool_.reconcile.insert(live.trial);
  if (live.ready) {
    replica.ready = true;
    replica.address = live.ready->address;
    group.elastic = true;
    group.batch = live.ready->batch;
    group.total_steps = live.ready->total_steps;
  }
  pool_.replicas.emplace(live.replica, std::move(replica));
  pool_.SlotsChange(live.trial);
}

// The agents of a trial have all been heard, or had their time: what is left of it?
void Nodes::TryRecover(TrialId id) {
  pool_.recovering.erase(id);
  std::set<NodeId> nodes_at_load = std::exchange(pool_.nodes_at_load[id], {});
  pool_.nodes_at_load.erase(id);
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
    watch_.GroupLost(
        id, {.replica = ReplicaId{}, .exit_code = -1, .signal = 0, .last_output = "", .error = ""},
        kLostWithAgent);
    return;
  }
  joins_.TakeUp(id);
  launched_.TakeUp(id, std::move(nodes_at_load));
  // Those who have left long ago, and were not told, are no group (Reconcile ends them).
  if (!ready.empty() && (trial.checkpoint.empty() || copies_.HasSource(id))) {
    // Nobody knows which commands arrived before the crash: a new generation for all of them.
    // The furthest goes first, so that what it knows is passed on.
    std::stable_sort(ready.begin(), ready.end(), [](const Replica* a, const Replica* b) {
      return a->generation > b->generation;
    });
    std::vector<ReplicaId> members;
    for (const Replica* replica : ready) members.push_back(replica->id);
    group.members = members;
    groups_.Regroup(id, std::move(members), /*abandon=*/true, /*after_loss=*/true);
  }
  if (turn_.StudyAt(trial.study).state != StudyState::kRunning)
    trials_.PauseTrial(id, "its study was stopped");
}

void Nodes::On(const AgentGone& event) {
  const auto it = pool_.nodes.find(event.node);
  if (it == pool_.nodes.end() || !it->second.connected) return;
  it->second.connected = false;
  checkpoints_.NodeGone();
  // A node that was to go and holds nothing need not come back.
  const bool empty = pool_.SlotsHeldOn(event.node) == 0;
  away_.insert(event.node);
  it->second.lease_ends = (it->second.leaving || it->second.releasing) && empty
                              ? turn_.now()
                              : After(turn_.now(), options_.lease_s);
}

void Nodes::LoseNode(NodeId id) {
  const Node& node = pool_.nodes.at(id);
  events_.Went(node, WhyGone(node, options_.lease_s));
  client_slots_.GiveBackOn(id, 0, absl::StrCat("node ", node.name, " was lost"));
  pool_.nodes.erase(id);
  away_.erase(id);
  pool_.draining.erase(id);
  checkpoints_.NodeLost(id);
  pool_.ForgetPlansFor(id);
  std::vector<Replica> lost;
  for (const auto& [replica_id, replica] : pool_.replicas) {
    if (replica.node == id) lost.push_back(replica);
  }
  LoseReplicas(lost);
  turn_.Wake();
}

void Nodes::CheckLeases() {
  pool_.ReleaseHeldBack();
  std::vector<NodeId> lost;
  for (const NodeId id : away_) {
    if (*pool_.nodes.at(id).lease_ends <= turn_.now()) lost.push_back(id);
  }
  for (const NodeId id : lost) LoseNode(id);

  if (pool_.recovery_ends && *pool_.recovery_ends <= turn_.now()) {
    pool_.recovery_ends.reset();
    events_.EndRecovery();
    for (const TrialId id : std::set<TrialId>(pool_.recovering)) TryRecover(id);
  }
}

std::optional<Time> Nodes::Next() const {
  std::optional<Time> next = pool_.NextRelease();
  for (const NodeId id : away_) next = Earlier(next, pool_.nodes.at(id).lease_ends);
  for (const NodeId node : pool_.draining) {
    for (const ReplicaId replica : pool_.replicas.On(node)) {
      const std::optional<Time> leaves = LeaveBy(node, pool_.replicas.at(replica).trial);
      if (leaves && *leaves > turn_.now()) next = Earlier(next, leaves);
    }
  }
  if (!pool_.recovering.empty() || events_.waits()) next = Earlier(next, pool_.recovery_ends);
  return next;
}

std::vector<NodeView> Nodes::Views() const {
  std::vector<NodeView> views;
  for (const auto& [id, node] : pool_.nodes) {
    NodeView view{.id = id,
                  .name = node.name,
                  .slots = node.slots,
                  .connected = node.connected,
                  .replicas = {},
                  .gpu_type = node.gpu_type,
                  .spot = node.spot,
                  .price_per_hour = node.price_per_hour,
                  .draining = node.draining,
                  .drain_ends = node.ends.value_or(Time{}),
                  .unusable = node.unusable};
    for (const ReplicaId held : pool_.replicas.On(id)) {
      const Replica& replica = pool_.replicas.at(held);
      view.replicas.push_back({held, replica.trial, replica.slot});
      for (const int more : replica.more_slots) {
        view.replicas.push_back({held, replica.trial, more});
      }
    }
    for (const auto& [slot, trial] : pool_.held_by_clients) {
      if (slot.node == id) view.replicas.push_back({ReplicaId{}, trial, slot.index});
    }
    views.push_back(std::move(view));
  }
  return views;
}

}  // namespace espalier
