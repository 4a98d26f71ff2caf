// Groups whose members wait for one another in vain.
//
// A replica that has waited for the others for longer than any of them should take says Stuck.
// Those of its generation that do not follow within kStuckGrace_s hang: they are stopped, and the
// others go on without them, as after any loss. When all say so, nobody hangs: they cannot reach
// one another. A new generation may mend that; if it does not for kMaxStuckInARow times, those on
// rank 0's node go on alone; and if not even they can, the trial starts again from its checkpoint.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tuner/core/core_impl.h"

namespace espalier {

void Core::Impl::On(const ReplicaStuck& event) {
  const auto it = replicas_.find(event.replica);
  if (it == replicas_.end() || it->second.stopping) return;
  const auto found = groups_.find(it->second.trial);
  if (found == groups_.end()) return;
  const Trial& trial = TrialAt(it->second.trial);
  Group& group = found->second;
  if (trial.state != TrialState::kRunning || group.pausing || group.ending) return;
  // What an earlier generation waited for is settled by the present one.
  if (event.generation != trial.generation) return;
  if (std::find(group.members.begin(), group.members.end(), event.replica) == group.members.end()) {
    return;
  }
  group.stuck.insert(event.replica);
  if (!group.stuck_ends) group.stuck_ends = After(now_, kStuckGrace_s);
  if (group.stuck.size() == group.members.size()) NobodyIsReached(trial.id);
}

void Core::Impl::CheckStuckGroups() {
  std::vector<TrialId> due;
  for (const auto& [id, group] : groups_) {
    if (group.stuck_ends && *group.stuck_ends <= now_) due.push_back(id);
  }
  for (const TrialId id : due) StopHung(id);
}

std::string Core::Impl::PlaceOf(const Replica& replica) const {
  const auto node = nodes_.find(replica.node);
  const std::string name =
      node == nodes_.end() ? absl::StrCat("node ", replica.node.value) : node->second.name;
  return absl::StrCat(name, " slot ", replica.slot);
}

// Stops the members that have not said that they wait.
void Core::Impl::StopHung(TrialId id) {
  Group& group = groups_.at(id);
  const std::set<ReplicaId>& waiting = group.stuck;
  group.stuck_ends.reset();
  if (group.pausing || group.ending) return;
  std::vector<ReplicaId> alive;
  std::vector<ReplicaId> hung;
  for (const ReplicaId member : group.members) {
    (waiting.contains(member) ? alive : hung).push_back(member);
  }
  if (alive.empty()) return;  // who waited is gone meanwhile, and a newer generation under way
  if (hung.empty()) return NobodyIsReached(id);
  std::vector<std::string> places;
  for (const ReplicaId replica : hung) places.push_back(PlaceOf(replicas_.at(replica)));
  const int before = SlotsHeldBy(id);
  Decide(TrialAt(id), DecisionKind::kShrink, before, before - static_cast<int>(hung.size()),
         absl::StrCat(hung.size() == 1 ? "a replica hangs (" : "replicas hang (",
                      absl::StrJoin(places, ", "), "): the others wait for it in vain; ",
                      alive.size(), " go on without it"));
  ++group.joiner_failures;
  Regroup(id, std::move(alive), /*abandon=*/true, /*after_loss=*/true);
  for (const ReplicaId replica : hung) StopReplica(replicas_.at(replica), 0);
}

// All members of the newest generation wait for one another.
void Core::Impl::NobodyIsReached(TrialId id) {
  Group& group = groups_.at(id);
  const Trial& trial = TrialAt(id);
  ++group.stuck_in_a_row;
  if (group.stuck_in_a_row < kMaxStuckInARow) {
    Regroup(id, std::vector<ReplicaId>(group.members), /*abandon=*/true, /*after_loss=*/true);
    return;
  }
  const NodeId home = replicas_.at(group.members.front()).node;
  std::vector<ReplicaId> near;
  for (const ReplicaId member : group.members) {
    if (replicas_.at(member).node == home) near.push_back(member);
  }
  const std::string what =
      absl::StrCat("the replicas could not reach one another ", group.stuck_in_a_row, " times");
  if (near.size() < group.members.size()) {
    const int left = static_cast<int>(near.size());
    Decide(trial, DecisionKind::kShrink, static_cast<int>(group.members.size()), left,
           absl::StrCat(what, ": those of one node go on alone"));
    group.target = {{home, left}};
    group.joiner_failures = kMaxJoinerFailures;  // the trial stays at its size
    Regroup(id, std::move(near), /*abandon=*/true, /*after_loss=*/true);
    return;
  }
  const int most = StudyAt(trial.study).spec.max_restarts;
  if (trial.restarts >= most) {
    EndTrial(id, TrialState::kFail, absl::StrCat(what, " and again after ", most, " restarts"),
             std::nullopt);
    return;
  }
  Emit(TrialRestarted{id, trial.restarts + 1});
  PauseTrial(id, absl::StrCat(what, "; goes on from its checkpoint (restart ", trial.restarts,
                              " of ", most, ")"));
}

// A group was told several times to form, and some members never came: their main threads hang.
// False if there is nobody left to tell it again.
bool Core::Impl::StopThoseNotFormed(TrialId id) {
  Group& group = groups_.at(id);
  if (!group.forming || ++group.form_timeouts < kMaxFormTimeouts) return true;
  group.form_timeouts = 0;
  if (group.awaited.size() == group.members.size()) {
    PauseTrial(id, "none of its replicas comes to form a group");
    return false;
  }
  for (const ReplicaId member : std::exchange(group.awaited, {})) {
    StopReplica(replicas_.at(member), 0);
    std::erase(group.members, member);
  }
  return true;
}

}  // namespace espalier
