#include "tuner/core/groups/joins.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tuner/core/state/study_facts.h"

namespace espalier {

namespace {

// A shorter time than this could be less than what it costs to start a replica again and again.
constexpr double kLeastTraining_s = 60;
// A pass over the data may take days, and where it ends may be unknown.
constexpr double kMostTraining_s = 3600;
constexpr double kTryAgain_s = 600;

}  // namespace

void Joins::Failed(TrialId id, const std::string& how, int failed) {
  Group& group = pool_.groups.at(id);
  const Trial& trial = turn_.TrialAt(id);
  const int before = trial.failed_joins->in_a_row;
  turn_.Emit(JoinsFailed{id,
                         {.in_a_row = before + failed,
                          .works_at = std::max(1, static_cast<int>(group.members.size())),
                          .reason = how,
                          .at = turn_.now(),
                          .step = group.progress ? group.progress->step : 0}});
  group.target.clear();
  for (const ReplicaId replica_id : pool_.replicas.Of(id)) {
    const Replica& replica = pool_.replicas.at(replica_id);
    if (!replica.leaving && !replica.stopping) ++group.target[replica.node];
  }
  pool_.reconcile.insert(id);
  turn_.Wake();
  if (before >= kMaxFailedJoins || trial.failed_joins->in_a_row < kMaxFailedJoins) return;
  const int held = StayingReplicas(id);
  turn_.Decide(trial, DecisionKind::kStudy, held, held, WhyNotGrowing(trial));
}

void Joins::NoteProgress(TrialId id, const ReplicaProgress& progress) {
  const Group& group = pool_.groups.at(id);
  const Trial& trial = turn_.TrialAt(id);
  if (group.forming || progress.generation != trial.generation) return;
  bool worked = false;
  for (const ReplicaId member : group.members) {
    const auto found = pool_.replicas.find(member);
    if (found == pool_.replicas.end() || !found->second.untried) continue;
    Replica& replica = found->second;
    if (!replica.first_progress) {
      replica.first_progress = {turn_.now(), progress.step, progress.epoch};
      continue;
    }
    const double trained_s = SecondsBetween(replica.first_progress->at, turn_.now());
    if (progress.step <= replica.first_progress->step || trained_s < kLeastTraining_s) continue;
    if (progress.epoch < replica.first_progress->epoch + 1 && trained_s < kMostTraining_s) continue;
    replica.untried = false;
    worked = true;
  }
  const FailedJoins& failed = *trial.failed_joins;
  if (failed.in_a_row == 0) return;
  if (failed.in_a_row < kMaxFailedJoins) {
    const bool as_many = static_cast<int>(group.members.size()) >= failed.works_at;
    if (worked && as_many) turn_.Emit(JoinsFailed{id, {}});
  } else if (progress.step >= 2 * failed.step &&
             SecondsBetween(failed.at, turn_.now()) >= kTryAgain_s) {
    TryAgain(id, "it has come twice as far");
  }
}

void Joins::RelyOnThoseLeft(const Group& group) {
  const auto untried = [this](ReplicaId member) { return pool_.replicas.at(member).untried; };
  if (!std::all_of(group.members.begin(), group.members.end(), untried)) return;
  for (const ReplicaId member : group.members) pool_.replicas.at(member).untried = false;
}

bool Joins::SomeUntried(const Group& group) const {
  return std::any_of(group.members.begin(), group.members.end(), [this](ReplicaId member) {
    const auto replica = pool_.replicas.find(member);
    return replica != pool_.replicas.end() && replica->second.untried;
  });
}

void Joins::TakeUp(TrialId id) {
  const std::set<ReplicaId>& all = pool_.replicas.Of(id);
  const bool trains = std::any_of(all.begin(), all.end(), [this](ReplicaId replica) {
    return pool_.replicas.at(replica).ready;
  });
  if (!trains) return;
  const FailedJoins& failed = *turn_.TrialAt(id).failed_joins;
  int ready = 0;
  for (const ReplicaId replica_id : all) {  // the newest last
    Replica& replica = pool_.replicas.at(replica_id);
    ready += replica.ready ? 1 : 0;
    replica.untried = !replica.ready || (failed.in_a_row > 0 && ready > failed.works_at);
  }
}

// Of the trial, but for those that leave.
int Joins::StayingReplicas(TrialId id) const {
  int staying = 0;
  for (const ReplicaId replica_id : pool_.replicas.Of(id)) {
    const Replica& replica = pool_.replicas.at(replica_id);
    staying += !replica.leaving && !replica.stopping ? 1 : 0;
  }
  return staying;
}

int Joins::MayStart(TrialId id) const {
  const Trial& trial = turn_.TrialAt(id);
  const FailedJoins& failed = *trial.failed_joins;
  if (failed.in_a_row == 0) return kNoLimit;
  int untried = 0;
  for (const ReplicaId replica_id : pool_.replicas.Of(id)) {
    const Replica& replica = pool_.replicas.at(replica_id);
    untried += replica.untried && !replica.leaving && !replica.stopping ? 1 : 0;
  }
  // Up to the size at which it works it may always have them, and up to its minimum while that has
  // not failed too often.
  const int least = turn_.StudyAt(trial.study).spec.min_slots;
  const int always =
      failed.in_a_row < kMaxFailedJoins ? std::max(failed.works_at, least) : failed.works_at;
  return std::max({0, kMaxFailedJoins - failed.in_a_row - untried, always - StayingReplicas(id)});
}

int Joins::MostReplicas(TrialId id) const {
  const int may_start = MayStart(id);
  return may_start == kNoLimit ? kNoLimit : std::max(1, StayingReplicas(id) + may_start);
}

void Joins::TryAgain(TrialId id, const std::string& what) {
  const Trial& trial = turn_.TrialAt(id);
  const int failed = trial.failed_joins->in_a_row;
  if (failed == 0) return;
  turn_.Emit(JoinsFailed{id, {}});
  turn_.Wake();
  if (failed < kMaxFailedJoins) return;
  const int held = StayingReplicas(id);
  turn_.Decide(trial, DecisionKind::kStudy, held, held, absl::StrCat("may grow again: ", what));
}

void Joins::TryAgainAll(const std::string& what) {
  for (const auto& [id, live] : pool_.live) TryAgain(id, what);
}

void Joins::TryAgainOn(NodeId node, const std::string& what) {
  std::set<TrialId> there;
  for (const ReplicaId replica : pool_.replicas.On(node)) {
    there.insert(pool_.replicas.at(replica).trial);
  }
  for (const TrialId id : there) {
    if (pool_.live.contains(id)) TryAgain(id, what);
  }
}

void Joins::TryAgainOf(StudyId study, const std::string& what) {
  for (const auto& [id, live] : pool_.live) {
    if (live.study->id == study) TryAgain(id, what);
  }
}

}  // namespace espalier
