// How an agent gives its place to another program, and takes one over.

#include <spdlog/spdlog.h>

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/private_files.h"
#include "base/protocol.h"
#include "trial_runner/agent/agent_loop.h"
#include "trial_runner/agent/handover.h"
#include "trial_runner/agent/trial_environment.h"

namespace espalier {
namespace {

// How it went, for `tuner agent --replace`, which waits for it.
void Note(const std::string& folder, const std::string& outcome) {
  const absl::Status written = WritePrivateFile(folder + "/" + kReplacedFile, outcome);
  if (!written.ok()) spdlog::warn("{}", std::string(written.message()));
}

}  // namespace

void AgentLoop::Replace(const std::string& executable, std::vector<std::string> arguments) {
  {
    const std::lock_guard lock(mutex_);
    replace_order_ = {executable, std::move(arguments)};
  }
  Wake();
}

void AgentLoop::ObeyReplace(Clock::time_point now) {
  {
    const std::lock_guard lock(mutex_);
    if (replace_order_) {
      replacing_ = std::exchange(replace_order_, std::nullopt);
      replacement_.reset();
    } else if (!replacement_) {
      return;
    }
  }
  std::optional<absl::Status> verdict;
  if (stopping_) {
    verdict = absl::FailedPreconditionError("this agent is ending");
  } else if (!replacement_) {
    absl::StatusOr<Replacement> tried = TryReplacement();
    if (tried.ok()) {
      replacement_.emplace(*std::move(tried));
    } else {
      verdict = tried.status();
    }
  } else {
    verdict = replacement_->Verdict(now);
  }
  if (!verdict) return;
  replacement_.reset();
  if (verdict->ok()) {
    for (LeavingReplica& left : leaving_) left.until = {};
    EndLeftovers(Clock::now());
    TellHeldExits(/*all=*/true);
    zygotes_.EndAll();  // the successor makes its own
    BeginWaiting(false);
    verdict = GiveWay();
  }
  // Still here.
  const std::string reason(verdict->message());
  spdlog::error("this agent is not replaced and goes on: {}", reason);
  Note(home_.folder(), "no " + reason);
}

absl::StatusOr<Replacement> AgentLoop::TryReplacement() const {
  std::error_code error;
  LaunchOrder order;
  order.command = replacing_->arguments;
  order.directory = std::filesystem::current_path(error).string();
  if (error) return absl::FailedPreconditionError("working directory: " + error.message());
  order.environment = inherited_environment_;
  order.log_path = home_.folder() + "/replacement.log";
  return Replacement::Try(replacing_->executable, HandOver(), order);
}

absl::Status AgentLoop::GiveWay() const {
  const v1::AgentHandover handover = HandOver();
  ESPALIER_ASSIGN_OR_RETURN(const FileDescriptor file, WriteHandover(handover));
  std::vector<int> kept = DescriptorsOf(handover);
  kept.push_back(file.get());
  std::vector<std::string> arguments = replacing_->arguments;
  arguments[0] = replacing_->executable;
  arguments.insert(arguments.end(), {kTakeOverOption, absl::StrCat("/proc/self/fd/", file.get())});
  spdlog::info("node {} goes on as {}", options_.node_name, replacing_->executable);
  spdlog::default_logger()->flush();
  return Become(replacing_->executable, arguments, kept);
}

v1::AgentHandover AgentLoop::HandOver() const {
  v1::AgentHandover handover;
  handover.set_format(kHandoverFormat);
  handover.set_release(Release());
  handover.set_node_name(options_.node_name);
  handover.set_directory(options_.directory);
  handover.set_mark(incarnation_);
  handover.set_lock(home_.lock());
  proxy_.HandOver(handover);
  handover.set_node_id(node_id_);
  handover.set_host_address(host_.address);
  handover.set_host_interface(host_.interface);
  for (const auto& [id, replica] : running_) *handover.add_running() = replica->HandOver();
  spares_.HandOver(handover);
  for (const auto& [id, replica] : unfinished_) *handover.add_unfinished() = replica;
  handover.mutable_ended()->Add(ended_.begin(), ended_.end());
  for (const auto& [id, start] : fetching_) *handover.add_fetching() = start;
  outbox_.HandOver(handover);
  handover.set_watch(watch_.pid().value_or(0));
  if (machine_ends_) handover.set_machine_ends_ns(machine_ends_->time_since_epoch().count());
  return handover;
}

void AgentLoop::TakeOver(const v1::AgentHandover& handover) {
  for (const v1::HandedReplica& handed : handover.running()) {
    running_.emplace(handed.identity().replica_id(), std::make_unique<ReplicaProcess>(handed));
    if (!handed.leased() && !handed.identity().has_ready()) keeper_.TrialRunsHere(handed.start());
  }
  outputs_at_ = Clock::now();
  spares_.TakeOver(handover);
  watch_.TakeOver(static_cast<pid_t>(handover.watch()));
  for (const v1::LiveReplica& replica : handover.unfinished()) {
    unfinished_.emplace(replica.replica_id(), replica);
  }
  ended_.insert(handover.ended().begin(), handover.ended().end());
  outbox_.TakeOver(handover);
  node_id_ = handover.node_id();
  if (!handover.host_address().empty()) {
    host_ = {handover.host_address(), handover.host_interface()};
  }
  if (handover.has_machine_ends_ns()) {
    machine_ends_ = Clock::time_point(std::chrono::nanoseconds(handover.machine_ends_ns()));
  }
  for (const v1::StartReplica& start : handover.fetching()) {
    if (keeper_.Fetch(start).ok()) fetching_.emplace(start.replica_id(), start);
  }
  spdlog::info("node {} goes on with {} replicas and {} spares of the agent before (release {})",
               options_.node_name, running_.size(), spares_.size(), handover.release());
  Note(home_.folder(), "yes " + Release());
}

}  // namespace espalier
