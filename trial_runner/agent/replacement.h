#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/file_descriptor.h"
#include "base/status.h"
#include "handover.pb.h"
#include "trial_runner/agent/processes/launch.h"

namespace espalier {

// The program that is to take the agent's place, while it shows that it can: started beside the
// agent with the agent's arguments, it has to start, find them good and be able to read what it
// will be handed. Belongs to the agent's owner thread; does not block.
class Replacement {
 public:
  using Clock = std::chrono::steady_clock;

  // Starts the program. What it prints goes to `log`, which is emptied first.
  static absl::StatusOr<Replacement> Try(const std::string& executable,
                                         const v1::AgentHandover& handover,
                                         const LaunchOrder& order);
  Replacement(Replacement&&) noexcept = default;
  Replacement& operator=(Replacement&&) = delete;
  ~Replacement();  // ends one that is still trying

  int pidfd() const { return process_.pidfd.get(); }
  pid_t pid() const { return process_.pid; }
  Clock::time_point deadline() const { return deadline_; }

  // nullopt: the program still tries, and has time left. OK: it can take over. Otherwise: what it
  // said.
  std::optional<absl::Status> Verdict(Clock::time_point now);

 private:
  Replacement(std::string executable, FileDescriptor handover, LaunchedProcess process,
              std::string log, Clock::time_point deadline);

  std::string executable_;
  FileDescriptor handover_;  // which it reads through /proc
  LaunchedProcess process_;
  std::string log_;
  Clock::time_point deadline_;
  bool reaped_ = false;
};

// The option by which a program is told where its hand-over is, and, with kTryOption, that it is
// only to show that it could.
inline constexpr const char* kTakeOverOption = "--take-over";
inline constexpr const char* kTryOption = "--check-handover";

// A file in the agent's folder with the outcome: "yes RELEASE", written by the agent that has taken
// over, or "no REASON".
inline constexpr const char* kReplacedFile = "replaced";
// A file beside it, written by the command that asks for a replacement: the path of the program.
inline constexpr const char* kReplaceByFile = "replace-by";

}  // namespace espalier
