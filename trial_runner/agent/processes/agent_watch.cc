#include "trial_runner/agent/processes/agent_watch.h"

#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/process_start.h"
#include "trial_runner/agent/processes/left_processes.h"

namespace espalier {
namespace {

// Its first argument; then the agent's number, its start and the mark follow.
constexpr std::string_view kWatchAgent = "--watch-agent";
constexpr int kArguments = 5;
constexpr std::chrono::seconds kStartPace{2};
constexpr std::chrono::seconds kGoneWithin{10};
constexpr int kTries = 6;  // while a disk or a driver keeps what was killed

FileDescriptor OpenProcess(pid_t pid) {
  return FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

bool HasEnded(const FileDescriptor& process, int timeout_ms) {
  pollfd ended{process.get(), POLLIN, 0};
  return poll(&ended, 1, timeout_ms) > 0;
}

// False: it cannot be seen whether it has ended.
bool AwaitAgent(pid_t pid, std::string_view start) {
  const FileDescriptor agent = OpenProcess(pid);
  if (!agent.open()) return errno == ESRCH;
  const std::string of_pid = ProcessStart(pid);
  if (of_pid.empty()) return HasEnded(agent, 0);
  if (of_pid != start) return true;  // another process has its number
  while (!HasEnded(agent, -1)) {
  }
  return true;
}

}  // namespace

AgentWatch::AgentWatch(bool wanted, std::string mark,
                       std::map<std::string, std::string> environment, std::string log_path)
    : wanted_(wanted),
      mark_(std::move(mark)),
      environment_(std::move(environment)),
      log_path_(std::move(log_path)) {}

AgentWatch::~AgentWatch() { End(); }

void AgentWatch::TakeOver(pid_t pid) {
  // Otherwise it has ended meanwhile, or is no child of this process.
  if (pid <= 0 || waitpid(pid, nullptr, WNOHANG) != 0) return;
  process_.pid = pid;
  process_.pidfd = OpenProcess(pid);
}

void AgentWatch::Keep(Clock::time_point now) {
  if (process_.pidfd.open() && HasEnded(process_.pidfd, 0)) Reap();
  if (!wanted_ || process_.pidfd.open() || now < start_at_) return;
  start_at_ = now + kStartPace;
  Start();
}

void AgentWatch::Start() {
  const std::string start = ProcessStart(getpid());
  if (start.empty()) return;  // nothing can be read of processes now: later
  LaunchOrder order;
  // This very program, also where another one is in its place by now. A name that is not that of
  // the agent keeps it from those who kill processes by name.
  order.command = std::vector<std::string>{"/proc/self/exe", std::string(kWatchAgent),
                                           absl::StrCat(getpid()), start, mark_};
  order.directory = "/";
  order.environment = environment_;
  order.log_path = log_path_;
  order.outlives = true;
  absl::StatusOr<LaunchedProcess> started = Launch(order);
  if (started.ok()) {
    process_ = *std::move(started);
    process_.control.Close();
    told_ = false;
  } else if (!std::exchange(told_, true)) {
    spdlog::warn("if this agent is killed, only the next one ends what its trials leave: {}",
                 std::string(started.status().message()));
  }
}

void AgentWatch::Reap() {
  while (waitpid(process_.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  process_ = {};
}

void AgentWatch::End() {
  if (!process_.pidfd.open()) return;
  kill(process_.pid, SIGKILL);
  Reap();
}

std::optional<pid_t> AgentWatch::pid() const {
  if (!process_.pidfd.open()) return std::nullopt;
  return process_.pid;
}

AgentWatch::Clock::time_point AgentWatch::NextTime() const {
  return wanted_ && !process_.pidfd.open() ? start_at_ : Clock::time_point::max();
}

std::optional<int> RunAgentWatch(int argc, const char* const* argv) {
  pid_t agent = 0;
  if (argc != kArguments || argv[1] != kWatchAgent || !absl::SimpleAtoi(argv[2], &agent)) {
    return std::nullopt;
  }
  prctl(PR_SET_NAME, "espalier-watch");
  close(kControlFd);                          // nothing is to be said
  if (!AwaitAgent(agent, argv[3])) return 1;  // the agent starts another watch
  for (int tries = 1;; ++tries) {
    const absl::StatusOr<std::size_t> ended = EndMarkedProcesses({argv[4]}, kGoneWithin);
    if (ended.ok()) {
      if (*ended > 0) {
        spdlog::warn("agent {} was killed: ended {} processes that it had left", agent, *ended);
      }
      return 0;
    }
    spdlog::warn("of agent {}, which was killed: {}", agent, std::string(ended.status().message()));
    if (tries == kTries) return 1;
  }
}

}  // namespace espalier
