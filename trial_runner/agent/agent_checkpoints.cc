// How an agent's replicas come to their checkpoints, and what becomes of those that they save.

#include <spdlog/spdlog.h>

#include <csignal>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/free_disk.h"
#include "base/trial_folder.h"
#include "trial_runner/agent/agent_loop.h"
#include "trial_runner/agent/last_output.h"

namespace espalier {

absl::Status AgentLoop::ClaimFolders(const TrialName& trial) const {
  for (const std::string& directory : {options_.directory, options_.shared_directory}) {
    if (directory.empty()) continue;
    ESPALIER_ASSIGN_OR_RETURN(const std::string moved, ClaimTrialFolder(directory, trial));
    if (moved.empty()) continue;
    spdlog::info("files of an earlier study \"{}\" were moved to {}", trial.study, moved);
  }
  return absl::OkStatus();
}

absl::Status AgentLoop::CheckDisk() const {
  const std::optional<std::int64_t> free = FreeDiskBytes(options_.directory);
  if (!free || *free >= options_.disk_reserve_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the disk of ", options_.directory, " has ", *free >> 20,
                   " MiB free, which is less than the reserve of ",
                   options_.disk_reserve_bytes >> 20, " MiB (--disk-reserve)"));
}

void AgentLoop::StartReplica(v1::StartReplica start) {
  const std::int64_t id = start.replica_id();
  if (unfinished_.contains(id) || ended_.contains(id)) return;  // commands may arrive twice
  if (stopping_) return;
  unfinished_.emplace(id, IdentityOf(start));
  absl::Status ready = CheckDisk();
  if (ready.ok()) {
    ready = ClaimFolders({start.study(), start.study_identity(), start.trial_number()});
  }
  if (!ready.ok()) return NotStarted(start, OfTheMachine(ready), CheckpointFailure::kNone);
  if (!start.has_from() || keeper_.IsHere(start)) return BeginReplica(start);
  const absl::Status fetches = keeper_.Fetch(start);
  if (!fetches.ok()) {
    return NotStarted(start, fetches, CheckpointFailure::kMissing);
  }
  fetching_.emplace(id, std::move(start));
}

// Where the folder cannot be claimed, the copy fails as well, and the service is told of that.
void AgentLoop::CopyCheckpoint(const v1::CopyCheckpoint& copy) {
  const absl::Status claimed =
      ClaimFolders({copy.study(), copy.study_identity(), copy.trial_number()});
  if (!claimed.ok()) spdlog::warn("{}", std::string(claimed.message()));
  keeper_.Copy(copy);
}

void AgentLoop::BeginReplica(const v1::StartReplica& start, bool may_wait) {
  keeper_.TrialRunsHere(start);
  if (AdoptSpare(start)) return;
  absl::StatusOr<std::unique_ptr<ReplicaProcess>> replica = LaunchReplica(start, may_wait);
  if (!replica.ok()) {
    keeper_.folders().Remove(start.replica_id());
    return NotStarted(start, replica.status(), CheckpointFailure::kNone);
  }
  if (*replica == nullptr) {
    waiting_.emplace(start.replica_id(), start);
    return;
  }
  Running(*std::move(replica));
}

void AgentLoop::BeginWaiting(bool may_wait) {
  for (const auto& [id, start] : std::exchange(waiting_, {})) BeginReplica(start, may_wait);
}

// Without an error it was stopped before it could begin.
void AgentLoop::NotStarted(const v1::StartReplica& start, const absl::Status& why,
                           CheckpointFailure checkpoint) {
  const std::string reason = ValidUtf8(std::string(why.message()));
  if (!reason.empty()) {
    spdlog::warn("replica {} of trial {} in study {}: {}", start.replica_id(), start.trial_number(),
                 start.study(), reason);
  }
  v1::ReplicaExited exited;
  exited.set_replica_id(start.replica_id());
  exited.set_trial_id(start.trial_id());
  exited.set_exit_code(-1);
  if (reason.empty()) exited.set_signal(SIGTERM);
  exited.set_error(reason);
  exited.set_agent_stops(stopping_);
  exited.set_node_at_fault(absl::IsResourceExhausted(why));
  exited.set_checkpoint_missing(checkpoint != CheckpointFailure::kNone);
  exited.set_checkpoint_gone(checkpoint == CheckpointFailure::kGone);
  AddExit(std::move(exited));
}

void AgentLoop::TakeCheckpoints() {
  for (CheckpointKeeper::Arrived& arrived : keeper_.TakeArrived()) {
    const std::string error = ValidUtf8(arrived.told.error());
    arrived.told.set_error(error);
    auto start = fetching_.extract(arrived.replica_id);
    // The exit of a replica that could not have it says so by itself, and what was here is known.
    const bool was_here = !start.empty() && arrived.told.bytes() == 0;
    if (start.empty() || (error.empty() && !was_here)) {
      v1::AgentMessage event;
      *event.mutable_copied() = std::move(arrived.told);
      outbox_.Add(std::move(event));
    }
    if (start.empty()) continue;
    if (!error.empty()) {
      NotStarted(start.mapped(), absl::UnavailableError(error),
                 arrived.gone ? CheckpointFailure::kGone : CheckpointFailure::kMissing);
      continue;
    }
    start.mapped().set_checkpoint(arrived.path);
    BeginReplica(start.mapped());
  }
}

void AgentLoop::LookAtFolders(Clock::time_point now) {
  for (auto& [id, saved] : keeper_.folders().Look(now)) {
    const auto replica = running_.find(id);
    if (replica == running_.end()) continue;
    TellSaved(id, replica->second->identity().trial_id(), std::move(saved));
  }
}

// In place of a program that does not say so.
void AgentLoop::TellSaved(std::int64_t replica_id, std::int64_t trial_id,
                          v1::CheckpointSaved saved) {
  v1::AgentMessage event;
  v1::FromReplica& from = *event.mutable_from_replica();
  from.set_replica_id(replica_id);
  from.set_trial_id(trial_id);
  *from.mutable_message()->mutable_checkpoint() = std::move(saved);
  outbox_.Add(std::move(event));
}

}  // namespace espalier
