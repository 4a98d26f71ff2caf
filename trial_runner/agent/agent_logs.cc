// What an agent's replicas print.

#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>

#include "base/protocol.h"
#include "base/trial_folder.h"
#include "trial_runner/agent/agent_loop.h"
#include "trial_runner/agent/log_limit.h"
#include "trial_runner/agent/trial_output.h"

namespace espalier {
namespace {

constexpr std::chrono::seconds kLogPace{1};

}  // namespace

// If the answer does not arrive, the service asks again.
void AgentLoop::SendOutput(const v1::ReadOutput& request) {
  const std::int64_t most = std::clamp<std::int64_t>(request.max_bytes(), 0, kMaxTrialOutput_bytes);
  v1::AgentMessage message;
  message.mutable_output()->set_request(request.request());
  message.mutable_output()->set_text(TrialOutput(
      FindTrialFolder(options_.directory,
                      {request.study(), request.study_identity(), request.trial_number()}),
      static_cast<std::size_t>(most)));
  stream_->Send(stream_number_, message);
}

void AgentLoop::LimitLogs(Clock::time_point now) {
  if (options_.max_log_bytes == 0 || now < logs_at_) return;
  logs_at_ = now + kLogPace;
  for (const auto& [id, replica] : running_) LimitLog(*replica);
  spares_.ForEach([this](const ReplicaProcess& spare) { LimitLog(spare); });
}

void AgentLoop::LimitLog(const ReplicaProcess& replica) {
  if (options_.max_log_bytes == 0) return;
  const absl::Status trimmed = TrimLog(replica.log_path(), options_.max_log_bytes);
  if (trimmed.ok() || log_trouble_) return;
  log_trouble_ = true;
  spdlog::warn("{}; no more is said of such", std::string(trimmed.message()));
}

}  // namespace espalier
