// What replicas say.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tuner/core/core_impl.h"

namespace espalier {

namespace {

bool SpeaksFor(NodeId node, const Replica& replica) { return !node || node == replica.node; }

}  // namespace

// Messages of replicas that the core does not know are stale: their node was lost, their trial has
// ended, or they are repeated. They change nothing; that is the fence around every group.

void Core::Impl::On(const ReplicaStarted& event) {
  const auto started = pool_.replicas.find(event.replica);
  if (started == pool_.replicas.end() || !SpeaksFor(event.node, started->second)) return;
  keeping_.unfetched.erase(started->second.trial);
}

void Core::Impl::On(const FromReplica& event) {
  const auto from = pool_.replicas.find(event.replica);
  if (from == pool_.replicas.end() || !SpeaksFor(event.node, from->second)) return;
  // These two are the many, and change nothing about who is in the group.
  if (!std::holds_alternative<ReplicaReport>(event.message) &&
      !std::holds_alternative<ReplicaProgress>(event.message)) {
    pool_.reconcile.insert(from->second.trial);
  }
  std::visit([&](const auto& message) { Hear(from->second, message); }, event.message);
}

void Core::Impl::Hear(Replica& from, const ReplicaReady& message) {
  if (from.ready || from.stopping) return;
  from.ready = true;
  from.address = message.address;
  const auto group = pool_.groups.find(from.trial);
  if (group == pool_.groups.end()) return;  // the trial has ended meanwhile; its deadline stands
  pool_.replicas.SetDeadline(from, std::nullopt);
  group->second.elastic = true;
  group->second.batch = message.batch;
  group->second.total_steps = message.total_steps;
  promise_stale_.insert(turn_.TrialAt(from.trial).study);
  turn_.Wake();
}

void Core::Impl::Hear(Replica& from, const ReplicaRegrouped& message) {
  from.generation = std::max(from.generation, message.generation);
  const auto found = pool_.groups.find(from.trial);
  if (found == pool_.groups.end()) return;
  Group& group = found->second;
  if (!group.forming || message.generation != turn_.TrialAt(from.trial).generation) return;
  group.awaited.erase(from.id);
  group.moved_at = turn_.now();
  if (message.pause_s > group.longest_pause.pause_s) group.longest_pause = message;
  if (group.awaited.empty()) FinishForming(from.trial);
}

void Core::Impl::Hear(const Replica& from, const ReplicaReport& message) {
  const Trial& trial = turn_.TrialAt(from.trial);
  if (trial.state != TrialState::kRunning) return;
  TakeValue(trial.id, {message.step, message.value, message.progress, turn_.now(), 0},
            message.extra);
}

void Core::Impl::Hear(const Replica& from, const ReplicaProgress& message) {
  const auto found = pool_.groups.find(from.trial);
  if (found == pool_.groups.end()) return;
  Group& group = found->second;
  JudgePace(from.trial, message);
  double step_time_s = 0;
  double sync_time_s = 0;
  std::int64_t steps = 0;
  for (const ProfileEntry& entry : message.profile) {
    step_time_s += entry.optimizer_time_s + entry.accumulation_time_s;
    sync_time_s += entry.sync_time_s;
    steps += entry.optimizer_count;
  }
  if (step_time_s > 0) group.sync_share = sync_time_s / step_time_s;
  if (steps > 0) group.step_time_s = step_time_s / static_cast<double>(steps);
  if (group.progress && message.step > group.progress->step) group.stuck_in_a_row = 0;
  group.noise = message.noise;
  group.progress = message;
  group.progress->profile.clear();
  group.progress->replica_times.clear();
  // Steps on GPUs of two types, for the moment of a move, say nothing about either.
  const std::optional<std::string> gpu_type = pool_.GpuTypeOf(group);
  // The allocator looks at what is new about speeds at once, and at how far trials are once in a
  // while: progress of thousands of trials must not mean as many allocations.
  if (gpu_type && speeds_.Learn(from.trial, *gpu_type, group, message)) LookAgain();
}

void Core::Impl::Hear(const Replica& from, const ReplicaFinished& message) {
  const Trial& trial = turn_.TrialAt(from.trial);
  if (trial.state != TrialState::kRunning) return;
  if (!message.failure.empty()) {
    EndTrial(trial.id, TrialState::kFail, message.failure, std::nullopt);
    return;
  }
  EndWell(trial.id, message.value, "");
}

void Core::Impl::On(const ReplicaExited& event) {
  const auto it = pool_.replicas.find(event.replica);
  if (it == pool_.replicas.end() || !SpeaksFor(event.node, it->second)) return;
  const Replica gone = it->second;
  pool_.replicas.erase(it);
  pool_.SlotsChange(gone.trial);
  if (turn_.TrialAt(gone.trial).newest_checkpoint.known()) keeping_.due.insert(gone.trial);
  turn_.Wake();
  ReplicaGone(gone, event, /*node_lost=*/false);
}

}  // namespace espalier
