// How far groups are between two steps: what moves is awaited, what does not is begun anew.

#include <algorithm>
#include <tuple>

#include "tuner/core/groups/groups.h"

namespace espalier {

namespace {

constexpr double kStallSteps = 4;  // that a group may take to come to a boundary

}  // namespace

// A group changes between two steps, and the one under way may be a long one.
double Groups::StallOf(TrialId id) const {
  const auto group = pool_.groups.find(id);
  const double step_time_s = group == pool_.groups.end() ? 0 : group->second.step_time_s;
  return TimeoutsOf(turn_.state().trials.at(id)).stall_s + kStallSteps * step_time_s;
}

bool Groups::Stalls(TrialId id, const Group& group) const {
  return group.forming && After(group.moved_at, StallOf(id)) <= turn_.now();
}

ReplicaForming Groups::FormingOf(TrialId id, const Group& group) const {
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
