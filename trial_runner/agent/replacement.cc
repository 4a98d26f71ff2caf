#include "trial_runner/agent/replacement.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "trial_runner/agent/handover.h"
#include "trial_runner/agent/last_output.h"

namespace espalier {
namespace {

constexpr std::chrono::seconds kTryWithin{60};

}  // namespace

absl::StatusOr<Replacement> Replacement::Try(const std::string& executable,
                                             const v1::AgentHandover& handover,
                                             const LaunchOrder& order) {
  ESPALIER_ASSIGN_OR_RETURN(FileDescriptor file, WriteHandover(handover));
  LaunchOrder trial = order;
  trial.command[0] = executable;
  trial.command.insert(
      trial.command.end(),
      {kTakeOverOption, absl::StrCat("/proc/", getpid(), "/fd/", file.get()), kTryOption});
  unlink(order.log_path.c_str());
  ESPALIER_ASSIGN_OR_RETURN(LaunchedProcess process, Launch(trial));
  return Replacement(executable, std::move(file), std::move(process), order.log_path,
                     Clock::now() + kTryWithin);
}

Replacement::Replacement(std::string executable, FileDescriptor handover, LaunchedProcess process,
                         std::string log, Clock::time_point deadline)
    : executable_(std::move(executable)),
      handover_(std::move(handover)),
      process_(std::move(process)),
      log_(std::move(log)),
      deadline_(deadline) {}

Replacement::~Replacement() {
  if (reaped_ || !process_.pidfd.open()) return;
  kill(-process_.pid, SIGKILL);
  while (waitpid(process_.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::optional<absl::Status> Replacement::Verdict(Clock::time_point now) {
  pollfd ended{process_.pidfd.get(), POLLIN, 0};
  if (poll(&ended, 1, 0) <= 0) {
    if (now < deadline_) return std::nullopt;
    return absl::DeadlineExceededError(absl::StrCat(
        executable_, " did not say within ", kTryWithin.count(), " s that it can take over"));
  }
  int status = 0;
  while (waitpid(process_.pid, &status, 0) < 0 && errno == EINTR) {
  }
  reaped_ = true;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  const std::string how = WIFEXITED(status)
                              ? absl::StrCat("exit code ", WEXITSTATUS(status))
                              : absl::StrCat("signal ", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  const std::string said(absl::StripAsciiWhitespace(LastOutput(log_)));
  return absl::FailedPreconditionError(
      absl::StrCat(executable_, " cannot take over (", how, ")", said.empty() ? "" : ": ", said));
}

}  // namespace espalier
