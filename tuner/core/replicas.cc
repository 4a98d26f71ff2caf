// What replicas say.

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tuner/core/core_impl.h"

namespace espalier {

namespace {

// Whether a fit to these would be the one there is.
bool SameTimes(const std::vector<ProfileObservation>& a, const std::vector<ProfileObservation>& b) {
  const auto near = [](double x, double y) { return std::abs(x - y) <= kSameTime * y; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&near](const ProfileObservation& x, const ProfileObservation& y) {
                      return x.key == y.key && near(x.grad_time_s, y.grad_time_s) &&
                             near(x.optim_time_s, y.optim_time_s);
                    });
}

}  // namespace

// Messages of replicas that the core does not know are stale: their node was lost, their trial has
// ended, or they are repeated. They change nothing; that is the fence around every group.

void Core::Impl::On(const ReplicaStarted&) {}

void Core::Impl::On(const ReplicaReady& event) {
  const auto it = replicas_.find(event.replica);
  if (it == replicas_.end() || it->second.ready || it->second.stopping) return;
  Replica& replica = it->second;
  replica.ready = true;
  replica.address = event.address;
  const auto group = groups_.find(replica.trial);
  if (group == groups_.end()) return;  // the trial has ended meanwhile; its deadline stands
  replica.deadline.reset();
  group->second.elastic = true;
  group->second.batch = event.batch;
  group->second.total_steps = event.total_steps;
  promise_stale_.insert(TrialAt(replica.trial).study);
  schedule_ = true;
}

void Core::Impl::On(const ReplicaRegrouped& event) {
  const auto it = replicas_.find(event.replica);
  if (it == replicas_.end()) return;
  it->second.generation = std::max(it->second.generation, event.generation);
  const auto found = groups_.find(it->second.trial);
  if (found == groups_.end()) return;
  Group& group = found->second;
  if (!group.forming || event.generation != TrialAt(it->second.trial).generation) return;
  group.awaited.erase(event.replica);
  if (event.pause_s > group.longest_pause.pause_s) group.longest_pause = event;
  if (group.awaited.empty()) FinishForming(it->second.trial);
}

void Core::Impl::On(const ReplicaReport& event) {
  const auto it = replicas_.find(event.replica);
  if (it == replicas_.end()) return;
  const Trial& trial = TrialAt(it->second.trial);
  if (trial.state != TrialState::kRunning) return;
  TakeValue(trial.id, {event.step, event.value, event.progress, now_, 0});
}

void Core::Impl::On(const ReplicaProgress& event) {
  const auto it = replicas_.find(event.replica);
  if (it == replicas_.end()) return;
  const auto found = groups_.find(it->second.trial);
  if (found == groups_.end()) return;
  Group& group = found->second;
  JudgePace(it->second.trial, event);
  double step_time_s = 0;
  double sync_time_s = 0;
  std::int64_t steps = 0;
  for (const ProfileEntry& entry : event.profile) {
    step_time_s += entry.optimizer_time_s + entry.accumulation_time_s;
    sync_time_s += entry.sync_time_s;
    steps += entry.optimizer_count;
  }
  if (step_time_s > 0) group.sync_share = sync_time_s / step_time_s;
  if (steps > 0) group.step_time_s = step_time_s / static_cast<double>(steps);
  if (group.progress && event.step > group.progress->step) group.stuck_in_a_row = 0;
  group.noise = event.noise;
  group.progress = event;
  group.progress->profile.clear();
  group.progress->replica_times.clear();
  // The allocator looks at what is new about speeds at once, and at how far trials are once in a
  // while: progress of thousands of trials must not mean as many allocations.
  if (!LearnSpeed(it->second.trial, event)) return;
  schedule_ = true;
}

bool Core::Impl::LearnSpeed(TrialId id, const ReplicaProgress& event) {
  const Group& group = groups_.at(id);
  // Steps on GPUs of two types, for the moment of a move, say nothing about either.
  const std::optional<std::string> gpu_type = GpuTypeOf(group);
  if (!gpu_type) return false;
  TrialSpeed& speed = speeds_[id];
  speed.gpu_type = *gpu_type;
  speed.noise = group.noise;
  speed.batch = group.batch;
  SpeedOnType& on_type = speed.by_gpu_type[*gpu_type];
  for (const ProfileEntry& entry : event.profile) {
    // A step that waits for a straggler says nothing about steps of so many replicas.
    if (!group.stragglers.suspects()) on_type.profile.Add(entry);
    on_type.max_profiled = std::max(on_type.max_profiled, entry.key.replicas);
  }
  std::vector<ProfileObservation> observations = on_type.profile.Observations();
  if (observations.empty() || SameTimes(observations, on_type.fitted_to)) return false;
  on_type.fitted = Fit(on_type.profile, on_type.fitted);
  on_type.fitted_to = std::move(observations);
  return true;
}

void Core::Impl::On(const ReplicaCheckpoint& event) {
  const auto it = replicas_.find(event.replica);
  if (it == replicas_.end()) return;
  const Trial& trial = TrialAt(it->second.trial);
  if (trial.checkpoint != event.path) Emit(CheckpointRecorded{trial.id, event.path});
}

void Core::Impl::On(const ReplicaFinished& event) {
  const auto it = replicas_.find(event.replica);
  if (it == replicas_.end()) return;
  const Trial& trial = TrialAt(it->second.trial);
  if (trial.state != TrialState::kRunning) return;
  if (!event.failure.empty()) {
    EndTrial(trial.id, TrialState::kFail, event.failure, std::nullopt);
    return;
  }
  EndWell(trial.id, event.value, "");
}

void Core::Impl::On(const ReplicaExited& event) {
  const auto it = replicas_.find(event.replica);
  if (it == replicas_.end()) return;
  const Replica gone = it->second;
  replicas_.erase(it);
  slots_touched_.insert(gone.trial);
  schedule_ = true;
  ReplicaGone(gone, event, /*node_lost=*/false);
}

}  // namespace espalier
