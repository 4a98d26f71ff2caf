#include "tuner/cli/agent_replacement.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_split.h"
#include "base/private_files.h"
#include "base/process_start.h"
#include "trial_runner/agent/agent_home.h"
#include "trial_runner/agent/replacement.h"
#include "tuner/cli/machine/machine.h"

namespace espalier {
namespace {

constexpr std::chrono::seconds kReplaceWithin{90};  // it tries the new program for 60
constexpr int kPace_ms = 50;

bool IsLocked(const std::string& folder) {
  const int lock = open((folder + "/lock").c_str(), O_RDWR | O_CLOEXEC);
  if (lock < 0) return false;
  const absl::Cleanup close_lock = [lock] { close(lock); };
  return flock(lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

// The descriptor of the agent on record in this folder; -1: it does not run.
int HoldAgent(const std::string& folder, const AgentRecord& record) {
  if (!IsLocked(folder)) return -1;
  const int held = static_cast<int>(syscall(SYS_pidfd_open, record.pid, 0));
  if (held >= 0 && ProcessStart(record.pid) == record.start) return held;
  if (held >= 0) close(held);
  return -1;
}

absl::Status AwaitOutcome(const std::string& folder, int agent, const AgentRecord& record) {
  const std::string path = folder + "/" + kReplacedFile;
  const auto until = std::chrono::steady_clock::now() + kReplaceWithin;
  while (std::chrono::steady_clock::now() < until) {
    const std::string outcome = TextOfFile(path);
    if (outcome.starts_with("yes ")) {
      std::printf("process %d goes on as release %s; its replicas train on\n", record.pid,
                  outcome.substr(4).c_str());
      return absl::OkStatus();
    }
    if (outcome.starts_with("no ")) {
      return absl::FailedPreconditionError("the agent goes on as it was: " + outcome.substr(3));
    }
    pollfd ended{agent, POLLIN, 0};
    if (poll(&ended, 1, kPace_ms) > 0) {
      return absl::AbortedError(fmt::format(
          "process {} has ended while it was being replaced, and its replicas with it; its log "
          "says more. Start the agent again",
          record.pid));
    }
  }
  return absl::DeadlineExceededError(
      fmt::format("process {} has not answered within {} s: is it stopped, or of a release that "
                  "cannot be replaced?",
                  record.pid, kReplaceWithin.count()));
}

}  // namespace

std::vector<std::string> OwnArguments() {
  std::string words = TextOfFile("/proc/self/cmdline");
  if (words.ends_with('\0')) words.pop_back();
  std::vector<std::string> arguments = absl::StrSplit(words, '\0');
  const auto handed = std::find(arguments.begin(), arguments.end(), kTakeOverOption);
  if (handed != arguments.end()) {
    arguments.erase(handed, std::min(handed + 2, arguments.end()));
  }
  return arguments;
}

std::string ProgramToBecome(const std::string& directory, const std::string& node) {
  const std::string path = AgentHomeFolder(directory, node) + "/" + kReplaceByFile;
  std::string program = TextOfFile(path);
  unlink(path.c_str());
  if (!program.empty()) return program;
  // A package that was upgraded has put the new program in the old one's place.
  program = OwnExecutable();
  constexpr std::string_view kDeleted = " (deleted)";
  if (program.ends_with(kDeleted)) program.resize(program.size() - kDeleted.size());
  return program;
}

absl::Status ReplaceRunningAgent(const std::string& directory, const std::string& node) {
  const std::string folder = AgentHomeFolder(directory, node);
  const absl::StatusOr<AgentRecord> record = ReadAgentRecord(folder);
  const int agent = record.ok() ? HoldAgent(folder, *record) : -1;
  if (agent < 0) {
    return absl::NotFoundError(
        fmt::format("no agent named \"{}\" runs in the directory {} on this machine: name the one "
                    "to replace by --name and --dir, or start one without --replace",
                    node, directory));
  }
  const absl::Cleanup close_agent = [agent] { close(agent); };
  unlink((folder + "/" + kReplacedFile).c_str());
  ESPALIER_RETURN_IF_ERROR(WritePrivateFile(folder + "/" + kReplaceByFile, OwnExecutable()));
  if (syscall(SYS_pidfd_send_signal, agent, SIGHUP, nullptr, 0) != 0) {
    return absl::PermissionDeniedError(
        fmt::format("process {} cannot be signalled: {}", record->pid, std::strerror(errno)));
  }
  return AwaitOutcome(folder, agent, *record);
}

}  // namespace espalier
