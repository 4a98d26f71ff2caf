#include "tuner/core/pool/pool_state.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <variant>

#include "absl/strings/str_cat.h"

namespace espalier {

void PoolState::TakeUp(const Trial& trial) {
  const bool holds = !trial.spans.empty() && trial.spans.back().to == Time{};
  if (trial.state == TrialState::kRunning || holds) recovering.insert(trial.id);
  if (holds) {
    for (const Slot& slot : trial.spans.back().slots) nodes_at_load[trial.id].insert(slot.node);
  }
  if (!Ended(trial.state)) live[trial.id] = {&trial, &turn_.StudyAt(trial.study)};
}

void PoolState::TakeUp(const Study& study) {
  if (UsesPool(study)) studies.insert(study.id);
}

void PoolState::Observe(const Change& change) {
  if (const auto* created = std::get_if<StudyCreated>(&change)) NoteStudy(created->id);
  if (const auto* changed = std::get_if<StudyStateChanged>(&change)) {
    NoteStudy(changed->id);
    for (const auto& [id, trial] : live) reconcile.insert(id);
  }
  if (const auto* created = std::get_if<TrialCreated>(&change)) {
    const Study& study = turn_.StudyAt(created->study);
    if (!study.spec.by_clients()) live[created->id] = {&turn_.TrialAt(created->id), &study};
  }
  if (const auto* newer = std::get_if<CheckpointRecorded>(&change)) reconcile.insert(newer->id);
  if (const auto ended = TrialEndedBy(change)) {
    live.erase(*ended);
    groups.erase(*ended);
    slots_blamed.erase(*ended);
  }
  if (const auto* deleted = std::get_if<StudyDeleted>(&change)) ForgetStudy(deleted->id);
}

void PoolState::NoteStudy(StudyId id) {
  if (UsesPool(turn_.StudyAt(id))) {
    studies.insert(id);
  } else {
    studies.erase(id);
  }
}

// Its trials are gone already.
void PoolState::ForgetStudy(StudyId id) {
  studies.erase(id);
  const auto gone = [this](TrialId trial) { return !turn_.state().trials.contains(trial); };
  const auto of_gone = [&gone](const auto& entry) { return gone(entry.first); };
  std::erase_if(live, of_gone);
  std::erase_if(groups, of_gone);
  std::erase_if(recovering, gone);
  std::erase_if(nodes_at_load, of_gone);
  std::erase_if(slots_touched, gone);
  std::erase_if(slots_blamed, of_gone);
}

// ---- changing what belongs together -------------------------------------------------------------

void PoolState::SlotsChange(TrialId id) {
  slots_touched.insert(id);
  reconcile.insert(id);
}

void PoolState::UpdateDrain(Node& node, const std::string& why) {
  const bool before = node.draining;
  const auto user = turn_.state().drained.find(node.id);
  node.draining = node.leaving || node.releasing || user != turn_.state().drained.end() ||
                  static_cast<int>(node.unusable.size()) == node.slots;
  std::optional<Time> ends;
  if (node.leaving) ends = node.leaves;
  if (user != turn_.state().drained.end() && user->second != Time{}) {
    ends = ends ? std::min(*ends, user->second) : user->second;
  }
  if (ends != node.ends) {
    node.ends = ends;
    node.ends_known = turn_.now();
  }
  node.draining ? void(draining.insert(node.id)) : void(draining.erase(node.id));
  if (node.draining == before) return;
  node.drain_begins = node.draining;
  if (node.draining) ForgetPlansFor(node.id);
  const std::string what = node.draining
                               ? absl::StrCat("node ", node.name, " drains: ", why)
                               : absl::StrCat("node ", node.name, " is no longer drained");
  const std::string when =
      ends ? absl::StrCat(", in ", static_cast<std::int64_t>(SecondsBetween(turn_.now(), *ends)),
                          " s")
           : "";
  for (const StudyId id : studies) turn_.Decide(id, -1, DecisionKind::kPool, 0, 0, what + when);
}

void PoolState::SetUnusable(Node& node, const std::map<int, std::string>& slots) {
  node.told_unusable = slots;
  UpdateUnusable(node);
}

void PoolState::HoldBack(NodeId id, const std::set<int>& slots, Time until,
                         const std::string& why) {
  const auto node = nodes.find(id);
  if (node == nodes.end()) return;
  for (const int slot : slots) {
    if (slot >= 0 && slot < node->second.slots) node->second.held_back[slot] = {until, why};
  }
  holding_back.insert(id);
  UpdateUnusable(node->second);
}

void PoolState::ReleaseHeldBack() {
  for (auto it = holding_back.begin(); it != holding_back.end();) {
    const auto node = nodes.find(*it);
    if (node != nodes.end()) {
      const auto over = std::erase_if(node->second.held_back, [this](const auto& held) {
        return held.second.until <= turn_.now();
      });
      if (over > 0) {
        UpdateUnusable(node->second);
        turn_.Wake();
      }
    }
    const bool none = node == nodes.end() || node->second.held_back.empty();
    it = none ? holding_back.erase(it) : std::next(it);
  }
}

std::optional<Time> PoolState::NextRelease() const {
  std::optional<Time> next;
  for (const NodeId id : holding_back) {
    const auto node = nodes.find(id);
    if (node == nodes.end()) continue;
    for (const auto& [slot, held] : node->second.held_back) next = Earlier(next, held.until);
  }
  return next;
}

void PoolState::UpdateUnusable(Node& node) {
  std::map<int, std::string> slots = node.told_unusable;
  for (const auto& [slot, held] : node.held_back) slots.emplace(slot, held.why);
  if (slots == node.unusable) return;
  std::map<std::string, std::vector<int>> news;
  for (const auto& [slot, why] : slots) {
    const auto known = node.unusable.find(slot);
    if (known != node.unusable.end() && known->second == why) continue;
    news[absl::StrCat("cannot be used: ", why)].push_back(slot);
  }
  for (const auto& [slot, why] : node.unusable) {
    if (!slots.contains(slot)) news["can be used again"].push_back(slot);
  }
  Tell(node, news);
  node.unusable = slots;
  ForgetPlansFor(node.id);
  for (const ReplicaId id : replicas.On(node.id)) reconcile.insert(replicas.at(id).trial);
  UpdateDrain(node, "none of its slots can be used");
}

// `news`: what of which slots, ascending.
void PoolState::Tell(const Node& node, const std::map<std::string, std::vector<int>>& news) const {
  for (const auto& [what, slots] : news) {
    std::string names = slots.size() > 1 ? "slots" : "slot";
    for (std::size_t i = 0; i < slots.size(); ++i) {
      std::size_t last = i;
      while (last + 1 < slots.size() && slots[last + 1] == slots[last] + 1) ++last;
      absl::StrAppend(&names, i == 0 ? " " : ", ", slots[i]);
      if (last > i) absl::StrAppend(&names, last > i + 1 ? " to " : ", ", slots[last]);
      i = last;
    }
    for (const StudyId id : studies) {
      turn_.Decide(id, -1, DecisionKind::kPool, 0, 0,
                   absl::StrCat(names, " of ", node.name, " ", what));
    }
  }
}

void PoolState::ForgetPlansFor(NodeId id) {
  for (auto it = groups.begin(); it != groups.end();) {
    const bool planned = it->second.target.contains(id) && ReplicasOf(it->first).empty();
    it = planned ? groups.erase(it) : std::next(it);
  }
}

std::int64_t PoolState::LastStepOf(const Study& study) const {
  if (study.spec.max_step > 0) return study.spec.max_step;
  for (const auto& [id, group] : groups) {
    if (group.total_steps > 0 && turn_.state().trials.at(id).study == study.id)
      return group.total_steps;
  }
  return 0;
}

std::int64_t PoolState::LastStepOf(const Trial& trial) const {
  const Study& study = turn_.StudyAt(trial.study);
  if (study.spec.max_step > 0) return study.spec.max_step;
  const auto own = groups.find(trial.id);
  const bool told = own != groups.end() && own->second.total_steps > 0;
  const std::int64_t steps = told ? own->second.total_steps : LastStepOf(study);
  // So many steps end one earlier where they are counted from 0. A clone does not show from where.
  const Trial& first =
      trial.lineage->cloned()
          ? turn_.TrialAt(study.trials.at(static_cast<std::size_t>(trial.lineage->founder)))
          : trial;
  const bool from_0 = !first.values.empty() && first.values.front().step == 0;
  return steps > 0 && from_0 ? steps - 1 : steps;
}

bool PoolState::HasComeToTheEnd(const Trial& trial) const {
  const std::int64_t last = LastStepOf(trial);
  return last > 0 && !trial.values.empty() && trial.values.back().step >= last;
}

// ---- nodes and their slots ----------------------------------------------------------------------

int PoolState::SlotsTotal() const {
  int total = 0;
  for (const auto& [id, node] : nodes) total += node.slots;
  return total;
}

std::string PoolState::NodeName(NodeId id) const {
  const auto node = nodes.find(id);
  return node == nodes.end() ? absl::StrCat("node ", id.value) : node->second.name;
}

bool PoolState::Draining(NodeId id) const {
  const auto node = nodes.find(id);
  return node != nodes.end() && node->second.draining;
}

int PoolState::SlotsHeldOn(NodeId id) const {
  int held = ClientSlotsOn(id);
  for (const ReplicaId replica : replicas.On(id)) held += replicas.at(replica).slots();
  return held;
}

int PoolState::SlotsHeldBy(TrialId id) const {
  int held = 0;
  for (const ReplicaId replica : replicas.Of(id)) held += replicas.at(replica).slots();
  return held;
}

int PoolState::ClientSlotsOn(NodeId node) const {
  const auto from = held_by_clients.lower_bound(Slot{node, 0});
  return static_cast<int>(std::distance(
      from, std::find_if(from, held_by_clients.end(),
                         [node](const auto& held) { return held.first.node != node; })));
}

bool PoolState::Usable(Slot slot) const {
  const auto node = nodes.find(slot.node);
  return node == nodes.end() || !node->second.unusable.contains(slot.index);
}

bool PoolState::Usable(const Replica& replica) const {
  return Usable(Slot{replica.node, replica.slot}) &&
         std::all_of(replica.more_slots.begin(), replica.more_slots.end(), [&](int slot) {
           return Usable(Slot{replica.node, slot});
         });
}

int PoolState::UnusableSlotsOn(const Node& node) const {
  return static_cast<int>(
      std::count_if(node.unusable.begin(), node.unusable.end(), [&](const auto& entry) {
        return !held_by_clients.contains({node.id, entry.first});
      }));
}

int PoolState::GpusOn(const Node& node) const {
  return node.gpus > 0 ? std::min(node.gpus, node.slots) : node.slots;
}

std::optional<int> PoolState::FreeSlot(NodeId node, TrialId trial) const {
  const std::vector<int> slots = FreeSlots(node, trial, 1);
  return slots.empty() ? std::nullopt : std::optional(slots.front());
}

std::vector<int> PoolState::FreeSlots(NodeId node_id, TrialId trial, int count) const {
  const auto node = nodes.find(node_id);
  if (node == nodes.end() || !node->second.connected) return {};
  const int gpus = GpusOn(node->second);
  std::set<int> taken;
  std::set<int> own_gpus;
  for (const ReplicaId id : replicas.On(node_id)) {
    const Replica& replica = replicas.at(id);
    taken.insert(replica.slot);
    taken.insert(replica.more_slots.begin(), replica.more_slots.end());
    if (replica.trial == trial && gpus > 0) own_gpus.insert(replica.slot % gpus);
  }
  for (auto held = held_by_clients.lower_bound({node_id, 0});
       held != held_by_clients.end() && held->first.node == node_id; ++held) {
    taken.insert(held->first.index);
    if (held->second == trial && gpus > 0) own_gpus.insert(held->first.index % gpus);
  }
  for (const Slot& slot : SlotsToRecover()) {
    if (slot.node == node_id) taken.insert(slot.index);
  }
  std::vector<int> found;
  while (static_cast<int>(found.size()) < count) {
    std::optional<std::tuple<bool, bool, int>> best;  // shares its own GPU, is slow
    for (int slot = 0; slot < node->second.slots; ++slot) {
      if (taken.contains(slot) || !Usable({node_id, slot})) continue;
      const std::tuple rank(own_gpus.contains(slot % gpus), IsSlow({node_id, slot}), slot);
      if (!best || rank < *best) best = rank;
    }
    if (!best) return {};
    found.push_back(std::get<int>(*best));
    taken.insert(found.back());
    if (gpus > 0) own_gpus.insert(found.back() % gpus);
  }
  return found;
}

Placement PoolState::OnGpusOfItsOwn(Placement placement, int least) const {
  int spare = TotalSlots(placement) - least;
  for (auto& [id, slots] : placement) {
    const auto node = nodes.find(id);
    if (node == nodes.end()) continue;
    const int surplus = std::clamp(slots - GpusOn(node->second), 0, std::max(0, spare));
    slots -= surplus;
    spare -= surplus;
  }
  return placement;
}

std::set<Slot> PoolState::SlotsToRecover() const {
  std::set<Slot> slots;
  for (const TrialId id : recovering) {
    const std::vector<SlotSpan>& spans = turn_.state().trials.at(id).spans;
    if (spans.empty() || spans.back().to != Time{}) continue;
    slots.insert(spans.back().slots.begin(), spans.back().slots.end());
  }
  for (const TrialId id : recovering) {
    for (const ReplicaId held : replicas.Of(id)) {
      const Replica& replica = replicas.at(held);
      slots.erase({replica.node, replica.slot});
      for (const int more : replica.more_slots) slots.erase({replica.node, more});
    }
  }
  return slots;
}

bool PoolState::IsSlow(Slot slot) const {
  const auto it = slow_slots.find(slot);
  return it != slow_slots.end() && it->second > turn_.now();
}

int PoolState::FreeSlowSlots(NodeId node) const {
  int count = 0;
  for (const auto& [slot, until] : slow_slots) {
    if (slot.node != node || until <= turn_.now()) continue;
    const bool held =
        std::any_of(replicas.begin(), replicas.end(), [&, &slot = slot](const auto& entry) {
          const Replica& replica = entry.second;
          const bool leaves = replica.leaving && groups.contains(replica.trial);
          return replica.node == node && replica.Holds(slot.index) && !leaves;
        });
    count += held ? 0 : 1;
  }
  return count;
}

// ---- replicas and groups ------------------------------------------------------------------------

std::vector<const Replica*> PoolState::ReplicasOf(TrialId id) const {
  std::vector<const Replica*> found;
  for (const ReplicaId replica : replicas.Of(id)) found.push_back(&replicas.at(replica));
  return found;
}

Placement PoolState::PlacementOf(TrialId id) const {
  Placement held;
  for (const ReplicaId replica_id : replicas.Of(id)) {
    const Replica& replica = replicas.at(replica_id);
    held[replica.node] += replica.slots();
  }
  return held;
}

std::string PoolState::PlaceOf(const Replica& replica) const {
  std::string place = absl::StrCat(NodeName(replica.node),
                                   replica.slots() > 1 ? " slots " : " slot ", replica.slot);
  for (const int more : replica.more_slots) absl::StrAppend(&place, ", ", more);
  return place;
}

std::optional<std::string> PoolState::GpuTypeOf(const Group& group) const {
  std::optional<std::string> type;
  for (const ReplicaId member : group.members) {
    const auto replica = replicas.find(member);
    const auto node = replica == replicas.end() ? nodes.end() : nodes.find(replica->second.node);
    if (node == nodes.end()) continue;
    if (type && *type != node->second.gpu_type) return std::nullopt;
    type = node->second.gpu_type;
  }
  return type;
}

bool PoolState::Settled(TrialId id, const Group& group) const {
  return !group.forming && group.elastic && !group.members.empty() && !group.ending &&
         !group.pausing && !group.replaced && !group.stragglers.suspects() &&
         group.members.size() == replicas.Of(id).size();
}

bool PoolState::MaySpan(TrialId id, const Placement& placement) const {
  if (placement.size() < 2) return true;
  return std::none_of(groups.begin(), groups.end(), [&](const auto& entry) {
    const auto& [other, group] = entry;
    if (other == id || group.target.size() < 2) return false;
    return std::any_of(group.target.begin(), group.target.end(),
                       [&](const auto& share) { return placement.contains(share.first); });
  });
}

int PoolState::MayGiveOn(TrialId id, const Group& group, NodeId node) const {
  const auto here = group.target.find(node);
  if (here == group.target.end() || !group.elastic || group.pausing) return 0;
  const Trial& trial = turn_.state().trials.at(id);
  if (trial.pinned_slots > 0) return 0;
  const int least = turn_.state().studies.at(trial.study).spec.min_slots;
  return std::clamp(TotalSlots(group.target) - least, 0, here->second);
}

int PoolState::SettledGiveOn(NodeId node) const {
  int gives = 0;
  for (const auto& [id, group] : groups) {
    if (group.target.contains(node) && Settled(id, group)) gives += MayGiveOn(id, group, node);
  }
  return gives;
}

bool PoolState::MayPauseForOthers(TrialId id, const Group& group) const {
  const Trial& trial = turn_.state().trials.at(id);
  return trial.state == TrialState::kRunning && trial.pinned_slots == 0 && group.elastic &&
         !group.forming && !group.pausing && !group.ending && !group.members.empty() &&
         SecondsBetween(group.last_resize, turn_.now()) >= kShareTurn_s;
}

}  // namespace espalier
