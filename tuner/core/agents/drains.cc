// Nodes that are to be emptied: their machine goes away, or a user wants it back.
//
// Nothing new is planned on such a node, and policies move trials off it where other slots allow.
// Where the moment is known at which the node is gone, whoever is still there shortly before it
// goes on with fewer replicas, or pauses with a checkpoint.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "tuner/core/agents/nodes.h"

namespace espalier {

void Nodes::On(const DrainNode& event) {
  NodeId id;
  for (const auto& [node_id, name] : turn_.state().nodes) {
    if (name == event.name) id = node_id;
  }
  if (!id) {
    turn_.reply().status = absl::NotFoundError(
        absl::StrCat("no node \"", event.name, "\" has ever been in this pool"));
    return;
  }
  turn_.reply().content = NodeReply{id};
  if (!(event.within_s >= 0 && event.within_s <= kMaxTime_s)) {
    turn_.reply().status = absl::InvalidArgumentError(
        absl::StrCat("node \"", event.name, "\" must be empty within 0 (no limit) to ", kMaxTime_s,
                     " seconds, got ", event.within_s));
    return;
  }
  if (event.undo && !turn_.state().drained.contains(id)) return;
  turn_.Emit(NodeDrained{id, !event.undo,
                         event.within_s > 0 ? After(turn_.now(), event.within_s) : Time{}});
  if (const auto node = pool_.nodes.find(id); node != pool_.nodes.end()) {
    pool_.UpdateDrain(node->second, "a user drains it");
    if (event.undo && !node->second.draining) {
      joins_.TryAgainAll(absl::StrCat("node ", node->second.name, " is no longer drained"));
    }
  }
  turn_.Wake();
}

void Nodes::On(const AgentLeaving& event) {
  const auto it = pool_.nodes.find(event.node);
  if (it == pool_.nodes.end()) return;
  const Time leaves = After(turn_.now(), std::max(0.0, event.within_s));
  // Told again it does not gain time.
  if (!it->second.leaving || leaves < it->second.leaves) it->second.leaves = leaves;
  it->second.leaving = true;
  pool_.UpdateDrain(it->second, "its agent says that it goes away");
  turn_.Wake();
}

// Where the notice is short, half of it is left for moving and half for saving.
std::optional<Time> Nodes::LeaveBy(NodeId id, TrialId trial) const {
  const auto node = pool_.nodes.find(id);
  if (node == pool_.nodes.end() || !node->second.ends) return std::nullopt;
  const Time known = node->second.ends_known;
  const double notice_s = std::max(0.0, SecondsBetween(known, *node->second.ends));
  const double drain_s = groups_.TimeoutsOf(turn_.state().trials.at(trial)).drain_s;
  return After(known, std::max(notice_s - drain_s, notice_s / 2));
}

bool Nodes::MustLeave(NodeId id, TrialId trial) const {
  const std::optional<Time> leaves = LeaveBy(id, trial);
  return leaves && *leaves <= turn_.now();
}

void Nodes::CheckDrains() {
  for (const NodeId id : std::set<NodeId>(pool_.draining)) {
    Node& node = pool_.nodes.at(id);
    if (std::exchange(node.drain_begins, false)) {
      joins_.TryAgainOn(id, absl::StrCat("node ", node.name, " is to be emptied"));
    }
    PlanNothingNewOn(id);
    if (node.ends) EmptyNode(node);
  }
}

// What was planned there and has not begun, or has ended, is not begun any more.
void Nodes::PlanNothingNewOn(NodeId id) {
  std::map<TrialId, int> living;
  for (const ReplicaId here : pool_.replicas.On(id)) {
    const Replica& replica = pool_.replicas.at(here);
    if (!replica.stopping && !replica.leaving) living[replica.trial] += replica.slots();
  }
  for (auto& [trial, group] : pool_.groups) {
    const auto planned = group.target.find(id);
    if (planned == group.target.end() || planned->second <= living[trial]) continue;
    planned->second = living[trial];
    if (planned->second == 0) group.target.erase(planned);
    pool_.reconcile.insert(trial);
    turn_.Wake();
  }
}

void Nodes::EmptyNode(const Node& node) {
  std::set<TrialId> here;
  for (const ReplicaId id : pool_.replicas.On(node.id)) {
    const Replica& replica = pool_.replicas.at(id);
    if (!replica.stopping && !replica.leaving && MustLeave(node.id, replica.trial)) {
      here.insert(replica.trial);
    }
  }
  if (!here.empty()) turn_.Wake();
  for (const TrialId id : here) {
    const auto group = pool_.groups.find(id);
    if (group == pool_.groups.end() || group->second.pausing) continue;
    // Of a launcher's ranks the rest may take long to end.
    if (!group->second.ending || group->second.over_nodes) LeaveNode(id, node);
  }
}

// The trial's time on this node is over: it goes on with replicas that train elsewhere, if these
// are enough, and else from its checkpoint.
void Nodes::LeaveNode(TrialId id, const Node& node) {
  Group& group = pool_.groups.at(id);
  const Trial& trial = turn_.TrialAt(id);
  const std::string why = absl::StrCat("node ", node.name, " goes away");
  int stay = 0;
  for (const ReplicaId member : group.members) {
    const auto replica = pool_.replicas.find(member);
    if (replica != pool_.replicas.end() && !MustLeave(replica->second.node, id)) ++stay;
  }
  const int least =
      trial.pinned_slots > 0 ? trial.pinned_slots : turn_.StudyAt(trial.study).spec.min_slots;
  if (!group.elastic || stay < least) {
    trials_.PauseTrial(id, absl::StrCat(why, " and no slots elsewhere are ready for it"));
    return;
  }
  const auto planned = group.target.find(node.id);
  if (planned == group.target.end()) return;  // on its way
  group.target.erase(planned);
  pool_.reconcile.insert(id);
  turn_.Decide(trial, DecisionKind::kShrink, pool_.SlotsHeldBy(id), stay, why);
}

}  // namespace espalier
