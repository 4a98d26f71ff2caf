// Replicas that slow their group down, and what is done about them.
//
// A straggler is replaced where a slot is free: its successor starts while the group trains on, and
// when it is ready the group forms with it and without the straggler. Without a free slot it is let
// go where the others are faster alone. Its slot is then avoided for a while, or the same slot
// would slow the next replica down.

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tuner/core/agents/replica_watch.h"

namespace espalier {

namespace {

constexpr double kSlowSlot_s = 600;  // that a slot is avoided which made a replica slow

}  // namespace

void ReplicaWatch::JudgePace(TrialId id, const ReplicaProgress& message) {
  Group& group = pool_.groups.at(id);
  const Trial& trial = turn_.TrialAt(id);
  const Study& study = turn_.StudyAt(trial.study);
  if (!study.spec.replace_stragglers || study.state != StudyState::kRunning) return;
  // Only a settled group is judged: nobody joins, leaves or ends.
  if (trial.state != TrialState::kRunning || group.forming || group.pausing || group.ending ||
      group.replaced || message.generation != trial.generation) {
    return;
  }
  const int planned = TotalSlots(group.target);
  const auto size = group.members.size();
  if (size != pool_.ReplicasOf(id).size() || size != static_cast<std::size_t>(planned)) return;
  const bool of_all =
      message.replica_times.size() == size &&
      std::all_of(group.members.begin(), group.members.end(), [&message](ReplicaId member) {
        return std::any_of(message.replica_times.begin(), message.replica_times.end(),
                           [member](const ReplicaTime& time) { return time.replica == member; });
      });
  if (!of_all) return;
  const auto straggler = group.stragglers.Observe(turn_.now(), message.replica_times);
  // One that waits for room where it is to move leaves its straggler behind with its place.
  if (straggler && pool_.PlacementOf(id) == group.target) ReplaceStraggler(id, *straggler);
}

void ReplicaWatch::ReplaceStraggler(TrialId id, const Straggler& straggler) {
  Group& group = pool_.groups.at(id);
  const Trial& trial = turn_.TrialAt(id);
  const Replica slow = pool_.replicas.at(straggler.replica);
  const Slot slot{slow.node, slow.slot};
  const bool known = pool_.IsSlow(slot);
  pool_.slow_slots[slot] = After(turn_.now(), kSlowSlot_s);
  const int size = static_cast<int>(group.members.size());
  const StudySpec& spec = turn_.StudyAt(trial.study).spec;
  const std::string what = absl::StrFormat("replica on %s takes %.1fx as long a step as the others",
                                           pool_.PlaceOf(slow), straggler.ratio);
  const auto give_up_place = [&group, &slow] {
    if (--group.target[slow.node] == 0) group.target.erase(slow.node);
  };
  const bool may_start = joins_.MayStart(id) > 0;
  if (const auto spare = may_start ? SpareSlot(id, slow) : std::nullopt) {
    give_up_place();
    ++group.target[spare->node];
    group.replaced = slow.id;
    groups_.StartReplica(trial, spare->node, spare->index);
    turn_.Decide(trial, DecisionKind::kMove, size, size,
                 absl::StrCat(what, ": replaced by ", pool_.nodes.at(spare->node).name, " slot ",
                              spare->index));
  } else if (trial.pinned_slots == 0 && size > spec.min_slots && spec.HasSize(size - 1) &&
             FasterWithout(size, straggler.ratio)) {
    give_up_place();
    group.replaced = slow.id;
    turn_.Decide(trial, DecisionKind::kShrink, size, size - 1,
                 absl::StrCat(what, ": no slot is free to replace it, and ", size - 1,
                              " are faster without it"));
  } else if (!known) {
    turn_.Decide(trial, DecisionKind::kMove, size, size,
                 absl::StrCat(what,
                              ": no slot is free to replace it, and without it the others would "
                              "not be faster"));
  }
  pool_.reconcile.insert(id);
  turn_.Wake();
}

// The replica that was to take a straggler's place is gone: the group stays as it is, and is judged
// anew.
void ReplicaWatch::GiveUpReplacement(Group& group) {
  group.replaced = {};
  group.target.clear();
  for (const ReplicaId member : group.members) ++group.target[pool_.replicas.at(member).node];
  group.stragglers.Reset(turn_.now());
}

// A free slot that nobody is to have and that is not slow itself; on another node if there is one.
std::optional<Slot> ReplicaWatch::SpareSlot(TrialId id, const Replica& slow) const {
  std::optional<Slot> same_node;
  for (const auto& [node_id, node] : pool_.nodes) {
    const std::optional<int> free = pool_.FreeSlot(node_id, id);
    if (!free || pool_.IsSlow({node_id, *free}) || node.draining) continue;
    if (node.gpu_type != pool_.nodes.at(slow.node).gpu_type) continue;
    int unclaimed = node.slots - pool_.UnusableSlotsOn(node);
    std::map<TrialId, int> held;
    for (const ReplicaId here : pool_.replicas.On(node_id)) {
      const Replica& replica = pool_.replicas.at(here);
      held[replica.trial] += replica.slots();
    }
    for (const auto& [trial, group] : pool_.groups) {
      const auto target = group.target.find(node_id);
      if (target == group.target.end()) continue;
      int& slots = held[trial];
      slots = std::max(slots, target->second);
    }
    for (const auto& [trial, slots] : held) unclaimed -= slots;
    if (unclaimed < 1) continue;
    if (node_id == slow.node) {
      same_node = Slot{node_id, *free};
      continue;
    }
    Placement placement = pool_.groups.at(id).target;
    Placement joined = placement;
    ++joined[node_id];  // before the slow one leaves
    if (SpansAny(joined, pool_.faults.Apart(turn_.now()))) continue;
    if (--placement[slow.node] == 0) placement.erase(slow.node);
    ++placement[node_id];
    if (pool_.MaySpan(id, placement)) return Slot{node_id, *free};
  }
  return same_node;
}

}  // namespace espalier
