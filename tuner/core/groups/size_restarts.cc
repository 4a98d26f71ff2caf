#include "tuner/core/groups/size_restarts.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/pool/slot_ledger.h"

namespace espalier {

namespace {

// Since its start: from one to the next it shows how fast it is, and that it gets on.
constexpr int kValuesNeeded = 2;

// Seconds of a step since the trial has had the slots that it has; 0: fewer than two values tell.
double StepTime_s(const Trial& trial) {
  if (trial.values.empty() || trial.spans.empty()) return 0;
  const Time since = trial.spans.back().from;
  const auto first =
      std::find_if(trial.values.begin(), trial.values.end(),
                   [since](const IntermediateValue& value) { return value.at >= since; });
  if (first == trial.values.end() || first->step == trial.values.back().step) return 0;
  return SecondsBetween(first->at, trial.values.back().at) /
         static_cast<double>(trial.values.back().step - first->step);
}

// Whether all processes run that the trial should have, and none is on its way out.
bool AllStay(const PoolState& pool, const Trial& trial, const Group& group) {
  const std::set<ReplicaId>& replicas = pool.replicas.Of(trial.id);
  const std::size_t all = group.over_nodes ? group.over_nodes->replicas.size() : 1;
  return replicas.size() == all && std::none_of(replicas.begin(), replicas.end(), [&](auto id) {
           const Replica& replica = pool.replicas.at(id);
           return replica.stopping || replica.leaving;
         });
}

// It is further than it was.
void NoteCost(Turn& turn, PoolState& pool, TrialId id, std::int64_t step) {
  Group& group = pool.groups.at(id);
  const Group::SizeRestart restart = *group.restart;
  const int to = std::max(1, pool.SlotsHeldBy(id));
  const double steps_s =
      static_cast<double>(step - restart.last_step) * restart.step_s * restart.from_slots / to;
  const double cost_s = std::max(0.0, SecondsBetween(restart.last_at, turn.now()) - steps_s);
  const std::int64_t repeated =
      restart.again_from ? restart.last_step - *restart.again_from + 1 : 0;
  turn.Emit(ResizeMeasured{id,
                           {.at = turn.now(),
                            .generation = turn.TrialAt(id).generation,
                            .from_replicas = restart.from_slots,
                            .to_replicas = to,
                            .pause_s = cost_s}});
  const std::string instead =
      to == restart.from_slots ? "" : absl::StrCat(" instead of ", restart.from_slots);
  std::string what =
      absl::StrFormat("the restart on %s%s cost %.1f s", SlotsText(to), instead, cost_s);
  if (repeated > 0) {
    absl::StrAppend(&what, ", with ", repeated, repeated == 1 ? " step" : " steps", " done again");
  }
  turn.Decide(turn.TrialAt(id), DecisionKind::kStudy, to, to, what);
  group.restart.reset();
  group.last_resize = turn.now();
}

}  // namespace

bool MayRestartForSize(const PoolState& pool, const Trial& trial, const Group& group) {
  return !group.elastic && !group.pausing && !group.restart && group.values_told >= kValuesNeeded &&
         AllStay(pool, trial, group);
}

bool AskToSave(PoolState& pool, Groups& groups, const Trial& trial, double grace_s) {
  const auto found = pool.groups.find(trial.id);
  if (found == pool.groups.end()) return false;
  Group& group = found->second;
  if (group.elastic || group.pausing || !AllStay(pool, trial, group)) return false;
  group.restart = Group::SizeRestart{.from_slots = pool.SlotsHeldBy(trial.id)};
  for (const ReplicaId id : std::set<ReplicaId>(pool.replicas.Of(trial.id))) {
    groups.SeeOff(pool.replicas.at(id), grace_s);
  }
  return true;
}

void StartOnNewSlots(Turn& turn, PoolState& pool, TrialId id) {
  const Trial& trial = turn.TrialAt(id);
  Group next;
  next.target = pool.groups.at(id).target;
  next.restart = pool.groups.at(id).restart;
  if (!trial.values.empty()) {
    next.restart->last_step = trial.values.back().step;
    next.restart->last_at = trial.values.back().at;
    next.restart->step_s = StepTime_s(trial);
  }
  turn.Emit(TrialStateChanged{
      .id = id,
      .state = TrialState::kPaused,
      .at = turn.now(),
      .reason = absl::StrCat("is started again on ", SlotsText(TotalSlots(next.target)))});
  pool.groups[id] = std::move(next);
  pool.reconcile.insert(id);
  turn.Wake();
}

void NoteValueOf(Turn& turn, PoolState& pool, TrialId id, std::int64_t step) {
  const auto found = pool.groups.find(id);
  if (found == pool.groups.end() || found->second.elastic) return;
  Group& group = found->second;
  // It may still tell values before it ends.
  const bool again = group.restart && group.restart->last_at != Time{};
  if (again && step <= group.restart->last_step) {
    group.restart->again_from = std::min(step, group.restart->again_from.value_or(step));
    return;
  }
  const std::vector<IntermediateValue>& known = turn.TrialAt(id).values;
  if (!known.empty() && step <= known.back().step) return;
  ++group.values_told;
  if (again) NoteCost(turn, pool, id, step);
}

}  // namespace espalier
