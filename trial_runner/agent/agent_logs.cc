// What an agent's replicas print.

#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/protocol.h"
#include "base/trial_folder.h"
#include "trial_runner/agent/agent_loop.h"
#include "trial_runner/agent/log_limit.h"
#include "trial_runner/agent/ranks/rank_files.h"
#include "trial_runner/agent/ranks/supervisor.h"
#include "trial_runner/agent/trial_output.h"

namespace espalier {
namespace {

constexpr std::chrono::seconds kLogPace{1};
constexpr std::chrono::milliseconds kOutputPace{200};

// The last one is the replica's own.
std::vector<std::string> LogsOf(const ReplicaProcess& replica) {
  std::vector<std::string> logs;
  const v1::StartReplica& start = replica.start();
  if (start.has_launch()) {
    logs.push_back(LauncherLog(replica.log_path()));
    const RankPlace place = RanksHere(start);
    for (int rank = 0; rank < place.here(); ++rank) {
      logs.push_back(RankLog(replica.log_path(), place.first() + rank));
    }
  }
  std::erase(logs, replica.log_path());
  logs.push_back(replica.log_path());
  return logs;
}

}  // namespace

// If the answer does not arrive, the service asks again.
void AgentLoop::SendOutput(const v1::ReadOutput& request) {
  const std::int64_t most = std::clamp<std::int64_t>(request.max_bytes(), 0, kMaxTrialOutput_bytes);
  v1::AgentMessage message;
  message.mutable_output()->set_request(request.request());
  message.mutable_output()->set_text(TrialOutput(
      FindTrialFolder(options_.directory,
                      {request.study(), request.study_identity(), request.trial_number()}),
      static_cast<std::size_t>(most), request.rank()));
  stream_->Send(stream_number_, message);
}

void AgentLoop::LimitLogs(Clock::time_point now) {
  if (options_.max_log_bytes == 0 || now < logs_at_) return;
  logs_at_ = now + kLogPace;
  for (const auto& [id, replica] : running_) {
    OutputWatch* output = replica->output();
    // What is cut out has been read before, also while the service cannot be told.
    if (output != nullptr && output->IsLongerThan(options_.max_log_bytes)) {
      std::vector<v1::ReplicaMessage> values = output->Look(OutputWatch::HowMuch::kAll);
      if (!values.empty()) Forward(id, std::move(values));
    }
    const LogCut cut = LimitLog(*replica);
    if (output != nullptr) output->Cut(cut);
  }
  spares_.ForEach([this](const ReplicaProcess& spare) { LimitLog(spare); });
}

LogCut AgentLoop::LimitLog(const ReplicaProcess& replica) {
  if (options_.max_log_bytes == 0) return {};
  LogCut cut;
  for (const std::string& log : LogsOf(replica)) {
    const absl::StatusOr<LogCut> trimmed = TrimLog(log, options_.max_log_bytes);
    cut = trimmed.value_or(LogCut{});
    if (!trimmed.ok() && !std::exchange(log_trouble_, true)) {
      spdlog::warn("{}; no more is said of such", std::string(trimmed.status().message()));
    }
  }
  return cut;
}

void AgentLoop::LookAtOutputs(Clock::time_point now) {
  if (now < outputs_at_) return;
  outputs_at_ = Clock::time_point::max();
  for (const auto& [id, replica] : running_) {
    OutputWatch* const output = replica->output();
    FileWatch* const files = replica->files();
    if (output == nullptr && files == nullptr) continue;
    outputs_at_ = now + kOutputPace;
    if (outbox_.full()) continue;
    std::vector<v1::ReplicaMessage> values =
        output != nullptr ? output->Look(OutputWatch::HowMuch::kSome) : files->Look();
    if (!values.empty()) Forward(id, std::move(values));
  }
}

}  // namespace espalier
