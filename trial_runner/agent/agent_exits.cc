// How an agent's replicas end, and what the service is told of it.

#include <spdlog/spdlog.h>

#include <csignal>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "trial_runner/agent/agent_loop.h"
#include "trial_runner/agent/last_output.h"
#include "trial_runner/agent/trial_environment.h"

namespace espalier {
namespace {

constexpr std::chrono::seconds kMostHeldForGpu{5};  // while a driver takes its time
constexpr std::chrono::seconds kMostLeaving{5};     // for what was killed to be gone
constexpr std::chrono::seconds kSweepPace{1};

// Of one whose process is still there: it has parked, or is killed.
v1::ReplicaExited ExitOf(const ReplicaProcess& replica, int killed_by) {
  v1::ReplicaExited exited;
  exited.set_replica_id(replica.identity().replica_id());
  exited.set_trial_id(replica.identity().trial_id());
  exited.set_exit_code(killed_by == 0 ? 0 : -1);
  exited.set_signal(killed_by);
  exited.set_last_output(LastOutput(replica.log_path()));
  return exited;
}

}  // namespace

void AgentLoop::StopReplica(const v1::StopReplica& stop) {
  for (auto* starts : {&fetching_, &waiting_}) {
    if (const auto start = starts->extract(stop.replica_id()); !start.empty()) {
      return NotStarted(start.mapped(), absl::OkStatus(), CheckpointFailure::kNone);
    }
  }
  const auto replica = running_.find(stop.replica_id());
  if (replica == running_.end()) return;  // its exit is told, or was never started
  // Most often because the trial has ended. If not, its spares are only an advantage lost.
  spares_.EndTrial(replica->second->identity().trial_id());
  ReplicaProcess& process = *replica->second;
  const bool on_cpus = GpusOf(options_, process.start()).empty();  // else its memory is waited for
  if (on_cpus && !process.kill_at() && process.EndsAtOnce()) return LeaveToEnd(stop.replica_id());
  process.Terminate(stop.grace_s(), Clock::now());
}

void AgentLoop::LeaveToEnd(std::int64_t replica_id) {
  running_.at(replica_id)->Terminate(0, Clock::now());
  Hear(replica_id);
  const auto running = running_.find(replica_id);
  if (running == running_.end()) return;  // it had parked
  std::unique_ptr<ReplicaProcess> replica = std::move(running->second);
  running_.erase(running);
  LimitLog(*replica);
  zygotes_.Ended(replica_id);
  unfinished_[replica_id] = replica->identity();
  AddExit(ExitOf(*replica, SIGKILL));
  spares_.AwaitEnd(std::move(replica), Clock::now());
  knows_orphans_ = true;  // to look soon for what it may have left
}

void AgentLoop::Park(std::int64_t replica_id, std::int64_t device_bytes) {
  const auto running = running_.find(replica_id);
  std::unique_ptr<ReplicaProcess> replica = std::move(running->second);
  running_.erase(running);
  unfinished_[replica_id] = replica->identity();
  keeper_.folders().Remove(replica_id);
  AddExit(ExitOf(*replica, 0));
  // One that was to be stopped is not wanted again.
  const bool unwanted = replica->kill_at().has_value();
  const std::int64_t trial_id = replica->identity().trial_id();
  spares_.Add(std::move(replica), Clock::now(), device_bytes);
  if (unwanted) spares_.EndTrial(trial_id);
}

void AgentLoop::ReplicaEnded(std::int64_t replica_id) {
  ReplicaProcess& replica = *running_.at(replica_id);
  ReplicaProcess::Ending ending = replica.Reap();
  LimitLog(replica);
  std::erase_if(ending.messages, [](const v1::ReplicaMessage& m) { return m.has_parked(); });
  Forward(replica_id, std::move(ending.messages));
  if (auto saved = keeper_.folders().LastLook(replica_id)) {
    TellSaved(replica_id, replica.identity().trial_id(), *std::move(saved));
  }
  v1::ReplicaExited exited;
  exited.set_replica_id(replica_id);
  exited.set_trial_id(replica.identity().trial_id());
  exited.set_exit_code(ending.exit_code);
  exited.set_signal(ending.signal);
  // A shell says by its exit code that its program was killed.
  const bool killed = ending.signal == SIGKILL || ending.exit_code == 128 + SIGKILL;
  if (killed && ending.error.empty() && !replica.kill_at()) {
    if (const std::string why = out_of_memory_.WhyKilled(); !why.empty()) {
      absl::StrAppend(&ending.last_output, "[its process ", why, "]\n");
      if (ending.signal != 0) ending.error = why;
    }
  }
  exited.set_last_output(std::move(ending.last_output));
  if (!ending.rank.empty()) {
    exited.set_rank(absl::StrCat(ending.rank, " on ", options_.node_name));
  }
  exited.set_error(std::move(ending.error));
  exited.set_agent_stops(stopping_ || cut_off_.TakeEnded(replica_id));
  unfinished_[replica_id] = replica.identity();
  const bool of_itself = !replica.kill_at();
  const bool may_be_gpu = (ending.exit_code != 0 || ending.signal != 0) &&
                          GpuOfSlot(options_, replica.identity().slot()) != nullptr;
  LeavingReplica left{.ended = {static_cast<pid_t>(replica.identity().pid()), replica.ids()},
                      .exited = std::move(exited),
                      .of_itself = of_itself,
                      .may_be_gpu = may_be_gpu,
                      .until = Clock::now() + kMostLeaving};
  running_.erase(replica_id);
  zygotes_.Ended(replica_id);
  leaving_.push_back(std::move(left));
  EndLeftovers(Clock::now());
}

std::set<pid_t> AgentLoop::OwnProcesses() const {
  std::set<pid_t> own = zygotes_.pids();
  for (const auto& [id, replica] : running_) own.insert(replica->identity().pid());
  spares_.ForEach([&](const ReplicaProcess& spare) { own.insert(spare.identity().pid()); });
  if (replacement_) own.insert(replacement_->pid());
  if (watch_.pid()) own.insert(*watch_.pid());
  return own;
}

void AgentLoop::EndLeftovers(Clock::time_point now) {
  if (leaving_.empty() && now < sweep_at_) return;
  const std::set<pid_t> own = OwnProcesses();
  std::vector<LeavingReplica> gone;
  std::erase_if(leaving_, [&](LeavingReplica& left) {
    if (!leftovers_.Gone(left.ended, own)) {
      if (now < left.until) return false;
      spdlog::warn("of replica {} of trial {} there are processes that do not end, though killed",
                   left.exited.replica_id(), left.exited.trial_id());
    }
    gone.push_back(std::move(left));
    return true;
  });
  for (LeavingReplica& left : gone) {
    left.of_itself ? TellExit(std::move(left.exited), left.may_be_gpu)
                   : AddExit(std::move(left.exited));
  }
  if (now < sweep_at_) return;
  sweep_at_ = now + kSweepPace;
  std::set<std::int64_t> alive;
  const auto note = [&](const ReplicaProcess& one) {
    alive.insert(one.ids().begin(), one.ids().end());
  };
  for (const auto& [id, replica] : running_) note(*replica);
  for (const LeavingReplica& left : leaving_)
    alive.insert(left.ended.ids.begin(), left.ended.ids.end());
  spares_.ForEach(note);
  knows_orphans_ = leftovers_.Sweep(alive, own);
}

void AgentLoop::TellExit(v1::ReplicaExited exited, bool may_be_gpu) {
  if (HeldExits::DiedOfNotice(exited)) {
    held_exits_.HoldForNotice(std::move(exited), Clock::now());
  } else if (may_be_gpu && gpu_watch_ && !stopping_) {
    held_exits_.HoldForGpus(std::move(exited), gpu_watch_->LookNow(),
                            Clock::now() + kMostHeldForGpu);
  } else {
    AddExit(std::move(exited));
  }
}

void AgentLoop::TellHeldExits(bool all) {
  if (held_exits_.empty()) return;
  HeldExits::Known known;
  {
    const std::lock_guard lock(mutex_);
    known.looks = gpu_looks_;
  }
  TellUnusableSlots();  // what those looks have found
  known.now = Clock::now();
  known.stopping = stopping_;
  known.leaving = machine_ends_.has_value();
  for (v1::ReplicaExited& exited : all ? held_exits_.TakeAll(known) : held_exits_.Take(known)) {
    AddExit(std::move(exited));
  }
}

void AgentLoop::AddExit(v1::ReplicaExited exited) {
  v1::AgentMessage event;
  *event.mutable_exited() = std::move(exited);
  outbox_.Add(std::move(event));
}

}  // namespace espalier
