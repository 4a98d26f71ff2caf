#include "tuner/core/scheduling/reconciler.h"

#include <algorithm>
#include <utility>

#include "tuner/core/groups/size_restarts.h"

namespace espalier {

namespace {

// So long a plain program trains on while the slots that it is to move to are not free. Two may
// wait for one another's.
constexpr double kPatience_s = 60;

}  // namespace

void Reconciler::ReconcileAll() {
  for (const TrialId id : std::vector<TrialId>(pool_.reconcile.begin(), pool_.reconcile.end())) {
    if (pool_.live.contains(id)) Reconcile(id);
    if (!pool_.live.contains(id) || HasWhatItShould(id)) pool_.reconcile.erase(id);
  }
}

// Replicas that the target has no place for: those whose slot cannot be used before others, joiners
// before members, high ranks before low ones. A straggler that is being replaced is always among
// them.
std::set<ReplicaId> Reconciler::Surplus(const Group& group,
                                        const std::vector<Replica*>& live) const {
  const auto rank = [this, &group](const Replica* r) {
    return std::pair(
        !pool_.Usable({r->node, r->slot}),
        std::find(group.members.begin(), group.members.end(), r->id) - group.members.begin());
  };
  std::set<ReplicaId> surplus;
  std::map<NodeId, std::vector<const Replica*>> by_node;
  for (const Replica* replica : live) {
    if (replica->id == group.replaced) {
      surplus.insert(replica->id);
    } else {
      by_node[replica->node].push_back(replica);
    }
  }
  for (auto& [node, here] : by_node) {
    const auto target = group.target.find(node);
    const std::size_t wanted =
        target == group.target.end() ? 0 : static_cast<std::size_t>(target->second);
    std::stable_sort(here.begin(), here.end(),
                     [&rank](const Replica* a, const Replica* b) { return rank(a) < rank(b); });
    for (std::size_t i = wanted; i < here.size(); ++i) surplus.insert(here[i]->id);
  }
  return surplus;
}

// Whether a program can share its work is known when its first replica says Ready. Until then that
// one has all the slots that are meant for its trial on a node, as soon as they are free together:
// where the trial spans nodes, on the one that has most of them, or with a launcher on each.
void Reconciler::StartFirst(const Trial& trial, const Group& group) {
  const Placement places = FirstPlacesOf(pool_, turn_.StudyAt(trial.study), group);
  if (places.empty()) return;
  if (places.size() > 1) {
    if (launched_.Start(trial, places)) NoteRunning(trial);
    return;
  }
  const auto [node, wanted] = *places.begin();
  std::vector<int> slots = pool_.FreeSlots(node, trial.id, wanted);
  if (slots.empty()) return;
  const int own = slots.front();
  slots.erase(slots.begin());
  StartOn(trial, node, own, std::move(slots));
}

// A plain program that is to have other slots trains on until these are free; then it is asked to
// end, and is started on them once it has. True: it is seen to.
bool Reconciler::RestartForSize(const Trial& trial, Group& group,
                                const std::vector<Replica*>& live) {
  const StudySpec& spec = turn_.StudyAt(trial.study).spec;
  if (!spec.resize_by_restart || live.empty()) return false;
  const Placement wanted = FirstPlacesOf(pool_, turn_.StudyAt(trial.study), group);
  if (HasItsSlots(trial, wanted)) {
    group.waits_for_slots.reset();
    return false;
  }
  if (!MayRestartForSize(pool_, trial, group)) return false;
  if (!AreFree(trial, wanted)) {
    if (!group.waits_for_slots) group.waits_for_slots = turn_.now();
    if (SecondsBetween(*group.waits_for_slots, turn_.now()) < kPatience_s) return true;
  }
  group.waits_for_slots.reset();
  group.restart = Group::SizeRestart{.from_slots = pool_.SlotsHeldBy(trial.id)};
  for (Replica* const replica : live) groups_.SeeOff(*replica, spec.stop_grace_s);
  return true;
}

// Whether the processes of a plain program have all that is planned for them. Where nothing can be
// planned for them, as on a node that is drained, they have.
bool Reconciler::HasItsSlots(const Trial& trial, const Placement& wanted) const {
  return wanted.empty() || pool_.PlacementOf(trial.id) == wanted;
}

// Beside those that the trial holds.
bool Reconciler::AreFree(const Trial& trial, const Placement& places) const {
  const Placement held = pool_.PlacementOf(trial.id);
  return std::all_of(places.begin(), places.end(), [&](const auto& place) {
    const auto here = held.find(place.first);
    const int missing = place.second - (here == held.end() ? 0 : here->second);
    return missing <= 0 || !pool_.FreeSlots(place.first, trial.id, missing).empty();
  });
}

void Reconciler::NoteRunning(const Trial& trial) {
  if (trial.state == TrialState::kRunning) return;
  turn_.Emit(TrialStateChanged{.id = trial.id, .state = TrialState::kRunning, .at = turn_.now()});
}

void Reconciler::StartOn(const Trial& trial, NodeId node, int slot, std::vector<int> more_slots) {
  NoteRunning(trial);
  groups_.StartReplica(trial, node, slot, std::move(more_slots));
}

void Reconciler::StartJoiners(const Trial& trial, const Group& group,
                              const std::vector<Replica*>& live) {
  if (!group.elastic) return StartFirst(trial, group);
  int may_start = joins_.MayStart(trial.id);
  for (const auto& [node, wanted] : group.target) {
    if (pool_.Draining(node)) continue;
    int here = 0;
    for (const Replica* replica : live) {
      // One whose slot cannot be used stays until another slot is free and its joiner is ready.
      const bool stays =
          replica->id != group.replaced && pool_.Usable({replica->node, replica->slot});
      here += replica->node == node && stays ? 1 : 0;
    }
    for (; here < wanted && may_start > 0; ++here, --may_start) {
      const std::optional<int> slot = pool_.FreeSlot(node, trial.id);
      if (!slot) break;
      StartOn(trial, node, *slot);
    }
  }
}

// The replicas that should train from the next generation on: the members that stay and the joiners
// that are ready. Joiners come in together; members that have no place any more go at once, but for
// those whose place is taken by a joiner that is still starting: a trial moves by growing first.
std::vector<ReplicaId> Reconciler::WantedMembers(TrialId id, const std::vector<Replica*>& live,
                                                 const std::set<ReplicaId>& surplus) const {
  const Group& group = pool_.groups.at(id);
  std::size_t starting = 0;
  for (const Replica* replica : pool_.ReplicasOf(id)) {
    starting += !replica->ready && !replica->stopping ? 1 : 0;
  }
  std::vector<ReplicaId> wanted;
  bool shrinks = false;
  for (const ReplicaId member : group.members) {
    const bool leaves = surplus.contains(member);
    const bool stands_in =
        leaves && starting > 0 && !nodes_.MustLeave(pool_.replicas.at(member).node, id);
    if (stands_in) --starting;
    if (!leaves || stands_in) {
      wanted.push_back(member);
    } else {
      shrinks = true;
    }
  }
  const std::vector<const Replica*> all = pool_.ReplicasOf(id);
  const bool all_ready = std::all_of(all.begin(), all.end(), [](const Replica* replica) {
    return replica->ready || replica->stopping;
  });
  if (!all_ready && !shrinks) return group.members;
  for (const Replica* replica : live) {
    const bool member =
        std::find(group.members.begin(), group.members.end(), replica->id) != group.members.end();
    if (replica->ready && !member) wanted.push_back(replica->id);
  }
  if (!wanted.empty() && !group.members.empty()) KeepASource(id, wanted);
  return wanted;
}

// A trial that moves as a whole keeps one of its members for one generation more, from which the
// others take what it has learnt.
void Reconciler::KeepASource(TrialId id, std::vector<ReplicaId>& wanted) const {
  const Group& group = pool_.groups.at(id);
  const bool has_one = std::any_of(wanted.begin(), wanted.end(), [&group](ReplicaId w) {
    return std::find(group.members.begin(), group.members.end(), w) != group.members.end();
  });
  if (has_one) return;
  // It may be one too many for a global batch that cannot be cut into more shares.
  const bool fixed = turn_.state().studies.at(turn_.state().trials.at(id).study).spec.batch_mode ==
                     BatchMode::kFixed;
  if (fixed && group.batch.initial > 0 && wanted.size() > 1 &&
      static_cast<std::int64_t>(wanted.size()) >= group.batch.initial) {
    wanted.pop_back();
  }
  wanted.insert(wanted.begin(), group.members.front());
}

// Whether Reconcile would find nothing to do, until something about the trial changes.
bool Reconciler::HasWhatItShould(TrialId id) const {
  const auto found = pool_.groups.find(id);
  if (found == pool_.groups.end()) return true;
  const Group& group = found->second;
  if (group.pausing || group.forming || group.ending || group.replaced) return false;
  if (turn_.state().studies.at(turn_.state().trials.at(id).study).state != StudyState::kRunning)
    return false;
  for (const ReplicaId replica_id : pool_.replicas.Of(id)) {
    const Replica& replica = pool_.replicas.at(replica_id);
    if (replica.leaving || replica.stopping || replica.ready != group.elastic) return false;
    if (!pool_.Usable({replica.node, replica.slot})) return false;
  }
  const Placement held = pool_.PlacementOf(id);
  const bool restarts =
      turn_.state().studies.at(turn_.state().trials.at(id).study).spec.resize_by_restart;
  if (!group.elastic && restarts) {
    const Trial& trial = turn_.state().trials.at(id);
    const Study& study = turn_.state().studies.at(trial.study);
    return !held.empty() && HasItsSlots(trial, FirstPlacesOf(pool_, study, group));
  }
  if (!group.elastic) {
    // Until its first replica is Ready, or ends, no more are started.
    return !held.empty() && std::all_of(held.begin(), held.end(), [&group](const auto& here) {
      const auto target = group.target.find(here.first);
      return target != group.target.end() && here.second <= target->second;
    });
  }
  const std::set<ReplicaId>& all = pool_.replicas.Of(id);
  return held == group.target && group.members.size() == all.size() &&
         std::all_of(group.members.begin(), group.members.end(),
                     [&all](ReplicaId member) { return all.contains(member); });
}

// One step from what a trial has to what it should have. Called after anything has changed.
void Reconciler::Reconcile(TrialId id) {
  const auto it = pool_.groups.find(id);
  if (it == pool_.groups.end() || it->second.pausing) return;
  Group& group = it->second;
  const Trial& trial = turn_.TrialAt(id);
  if (turn_.StudyAt(trial.study).state != StudyState::kRunning) return;
  std::vector<Replica*> live;
  bool replaced_lives = false;
  for (const ReplicaId replica_id : pool_.replicas.Of(id)) {
    Replica& replica = pool_.replicas.at(replica_id);
    if (replica.leaving || replica.stopping) continue;
    live.push_back(&replica);
    replaced_lives = replaced_lives || replica_id == group.replaced;
  }
  if (!replaced_lives) group.replaced = {};
  if (!group.elastic && RestartForSize(trial, group, live)) return;
  const std::set<ReplicaId> surplus = Surplus(group, live);
  if (checkpoints_.StartAgainIfNobodyKnows(
          id, "a newer checkpoint than it was started from came to light",
          /*its_fault=*/false)) {
    return;
  }
  const bool first = !group.elastic && !pool_.replicas.Of(id).empty();
  const bool nowhere = pool_.replicas.Of(id).empty() &&
                       (!copies_.CheckpointInReach(trial) || checkpoints_.GivesItsFolder(trial));
  if (!first && !nowhere && !group.ending) StartJoiners(trial, group, live);

  // Joiners that are no longer wanted have nothing to hand over.
  std::erase_if(live, [&](Replica* replica) {
    const bool member =
        std::find(group.members.begin(), group.members.end(), replica->id) != group.members.end();
    if (member || !surplus.contains(replica->id)) return false;
    groups_.StopReplica(*replica, 0);
    return true;
  });
  if (!group.elastic || group.forming || group.ending) return;
  std::vector<ReplicaId> wanted = WantedMembers(id, live, surplus);
  if (wanted.empty() || wanted == group.members) return;
  groups_.Regroup(id, std::move(wanted), /*abandon=*/false, /*after_loss=*/false);
}

}  // namespace espalier
