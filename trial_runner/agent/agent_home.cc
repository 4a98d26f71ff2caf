#include "trial_runner/agent/agent_home.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/private_files.h"
#include "base/process_start.h"
#include "base/trial_folder.h"
#include "trial_runner/agent/processes/left_processes.h"

namespace espalier {
namespace {

// SIGKILL takes effect at once but for processes that wait for a disk or a driver.
constexpr std::chrono::seconds kEndWithin{10};

std::string RecordPath(const std::string& folder) { return folder + "/run"; }

absl::Status WriteRecord(const std::string& folder, const AgentRecord& record) {
  std::string text = absl::StrCat("pid ", record.pid, " ", record.start, "\n");
  for (const std::string& mark : record.marks) absl::StrAppend(&text, "mark ", mark, "\n");
  return WritePrivateFile(RecordPath(folder), text);
}

absl::Status IsTaken(const std::string& folder, const std::string& directory,
                     const std::string& node) {
  const absl::StatusOr<AgentRecord> record = ReadAgentRecord(folder);
  const std::string who = record.ok() ? absl::StrCat(" (process ", record->pid, ")") : "";
  return absl::AlreadyExistsError(absl::StrCat(
      "agent: an agent named \"", node, "\" runs in the directory ", directory, " already", who,
      ": end it first, replace it in place with tuner agent --replace, or give this one another "
      "name or directory"));
}

}  // namespace

std::string AgentHomeFolder(const std::string& directory, const std::string& node) {
  // No study's folder begins with a dot.
  return absl::StrCat(directory, "/.agent/", FolderName(node));
}

absl::StatusOr<AgentRecord> ReadAgentRecord(const std::string& folder) {
  std::ifstream file(RecordPath(folder));
  AgentRecord record;
  for (std::string word; file >> word;) {
    if (word == "pid") {
      file >> record.pid >> record.start;
    } else if (word == "mark") {
      file >> record.marks.emplace_back();
    }
  }
  if (record.pid <= 0) {
    return absl::NotFoundError(absl::StrCat("no agent is on record in ", folder));
  }
  return record;
}

absl::StatusOr<AgentHome> AgentHome::Take(const std::string& directory, const std::string& node) {
  const std::string folder = AgentHomeFolder(directory, node);
  ESPALIER_RETURN_IF_ERROR(MakePrivateFolders(folder));
  const std::string path = folder + "/lock";
  FileDescriptor lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.open()) {
    return absl::FailedPreconditionError(
        absl::StrCat("agent: cannot open ", path, ": ", std::strerror(errno)));
  }
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return IsTaken(folder, directory, node);
    return absl::FailedPreconditionError(
        absl::StrCat("agent: cannot lock ", path, ": ", std::strerror(errno)));
  }
  return AgentHome(folder, std::move(lock));
}

AgentHome AgentHome::TakeOver(const std::string& directory, const std::string& node, int lock) {
  return {AgentHomeFolder(directory, node), FileDescriptor(lock)};
}

absl::StatusOr<std::string> AgentHome::Begin() {
  AgentRecord record;
  const absl::StatusOr<AgentRecord> former = ReadAgentRecord(folder_);
  if (former.ok() && !former->marks.empty()) {
    const absl::StatusOr<std::size_t> ended = EndMarkedProcesses(former->marks, kEndWithin);
    if (!ended.ok()) {
      spdlog::warn("of the agent before this one: {}", std::string(ended.status().message()));
      record.marks = former->marks;
    } else if (*ended > 0) {
      spdlog::info("ended {} processes that the agent before this one had left behind", *ended);
    }
  }
  record.pid = getpid();
  record.start = ProcessStart(record.pid);
  record.marks.push_back(NewRunMark());
  ESPALIER_RETURN_IF_ERROR(WriteRecord(folder_, record));
  return record.marks.back();
}

void AgentHome::End() const {
  absl::StatusOr<AgentRecord> record = ReadAgentRecord(folder_);
  if (!record.ok()) return;
  const absl::StatusOr<std::size_t> ended = EndMarkedProcesses(record->marks, kEndWithin);
  if (!ended.ok()) {
    spdlog::warn("of this agent's trials: {}", std::string(ended.status().message()));
    return;
  }
  record->marks.clear();
  if (const absl::Status written = WriteRecord(folder_, *record); !written.ok()) {
    spdlog::warn("{}", std::string(written.message()));
  }
}

}  // namespace espalier
