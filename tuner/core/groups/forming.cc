// How far groups are between two steps: what moves is awaited, what does not is begun anew.

#include <algorithm>
#include <tuple>

#include "tuner/core/core_impl.h"

namespace espalier {

namespace {

bool IsFurther(const ReplicaForming& now, const ReplicaForming& before) {
  return std::tuple(now.generation, now.phase, now.bytes) >
         std::tuple(before.generation, before.phase, before.bytes);
}

}  // namespace

void Core::Impl::Hear(Replica& from, const ReplicaForming& message) {
  if (!IsFurther(message, from.forming)) return;
  from.forming = message;
  if (from.leaving) {
    // It saves a checkpoint. One that is being stopped has had its time.
    if (from.deadline() && !from.stopping) {
      pool_.replicas.SetDeadline(
          from, std::max(*from.deadline(), After(turn_.now(), StallOf(from.trial))));
    }
    return;
  }
  const auto group = pool_.groups.find(from.trial);
  if (group == pool_.groups.end() || message.generation != turn_.TrialAt(from.trial).generation)
    return;
  group->second.moved_at = turn_.now();
}

// A group changes between two steps, and the one under way may be a long one.
double Core::Impl::StallOf(TrialId id) const {
  const auto group = pool_.groups.find(id);
  const double step_time_s = group == pool_.groups.end() ? 0 : group->second.step_time_s;
  return TimeoutsOf(turn_.state().trials.at(id)).stall_s + kStallSteps * step_time_s;
}

bool Core::Impl::Stalls(TrialId id, const Group& group) const {
  return group.forming && After(group.moved_at, StallOf(id)) <= turn_.now();
}

ReplicaForming Core::Impl::FormingOf(TrialId id, const Group& group) const {
  ReplicaForming most;
  if (!group.forming && !group.pausing) return most;
  most.generation = turn_.state().trials.at(id).generation;
  most.phase = group.pausing ? GroupPhase::kSaving : GroupPhase::kMeeting;
  for (const Replica* replica : pool_.ReplicasOf(id)) {
    const ReplicaForming& own = replica->forming;
    if (own.generation != most.generation) continue;
    if (std::tuple(own.phase, own.bytes_total, own.bytes) >
        std::tuple(most.phase, most.bytes_total, most.bytes)) {
      most = own;
    }
  }
  return most;
}

}  // namespace espalier
