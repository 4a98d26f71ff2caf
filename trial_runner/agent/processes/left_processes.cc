#include "trial_runner/agent/processes/left_processes.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file_descriptor.h"
#include "base/folder_entries.h"
#include "base/private_files.h"
#include "base/process_start.h"
#include "tuner/credentials/hexadecimal.h"

namespace espalier {
namespace {

struct Process {
  pid_t parent = 0;
  std::string start;
};

std::optional<pid_t> NumberIn(std::string_view name) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return pid;
}

std::map<pid_t, Process> AllProcesses() {
  std::map<pid_t, Process> all;
  std::error_code error;
  for (const auto& entry : FolderEntries("/proc", error)) {
    const std::optional<pid_t> pid = NumberIn(entry.path().filename().string());
    if (pid) all[*pid] = {StatusOf(*pid).parent, ProcessStart(*pid)};
  }
  return all;
}

// An agent may have been started from within a trial of the one before it.
std::set<pid_t> ThisAndThoseAbove(const std::map<pid_t, Process>& all) {
  std::set<pid_t> spared = {1};
  for (pid_t pid = getpid(); pid > 0 && spared.insert(pid).second;) {
    const auto process = all.find(pid);
    if (process == all.end()) break;
    pid = process->second.parent;
  }
  return spared;
}

void AddDescendants(const std::map<pid_t, Process>& all, const std::set<pid_t>& spared,
                    std::set<pid_t>& condemned) {
  for (bool found = true; found;) {
    found = false;
    for (const auto& [pid, process] : all) {
      if (condemned.contains(process.parent) && !spared.contains(pid)) {
        found = condemned.insert(pid).second || found;
      }
    }
  }
}

std::set<pid_t> Condemned(const std::map<pid_t, Process>& all,
                          const std::vector<std::string>& marks) {
  const std::set<pid_t> spared = ThisAndThoseAbove(all);
  std::set<pid_t> condemned;
  for (const auto& [pid, process] : all) {
    if (!spared.contains(pid) && CarriesOneOf(VariablesOf(pid), marks)) condemned.insert(pid);
  }
  AddDescendants(all, spared, condemned);
  return condemned;
}

// Nothing, if the number is another's by now.
FileDescriptor Hold(pid_t pid, const Process& process) {
  FileDescriptor held(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (process.start.empty() || ProcessStart(pid) != process.start) held.Close();
  return held;
}

bool AwaitEnd(const FileDescriptor& held, std::chrono::steady_clock::time_point until) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
  pollfd ended{held.get(), POLLIN, 0};
  return poll(&ended, 1, static_cast<int>(std::max<std::int64_t>(0, left.count()))) > 0;
}

}  // namespace

std::string NewRunMark() {
  constexpr std::size_t kBytes = 16;
  return RandomHexadecimal(kBytes);
}

std::string RunMarks(const std::map<std::string, std::string>& inherited, const std::string& mark) {
  const auto outer = inherited.find(kRunMarkVariable);
  if (outer == inherited.end() || outer->second.empty()) return mark;
  return absl::StrCat(outer->second, ",", mark);
}

std::vector<std::string> VariablesOf(pid_t pid) {
  return absl::StrSplit(TextOfFile(absl::StrCat("/proc/", pid, "/environ")), '\0');
}

bool CarriesOneOf(const std::vector<std::string>& variables,
                  const std::vector<std::string>& marks) {
  const std::string wanted = absl::StrCat(kRunMarkVariable, "=");
  for (const std::string& variable : variables) {
    if (!variable.starts_with(wanted)) continue;
    const std::vector<std::string> carried = absl::StrSplit(variable.substr(wanted.size()), ',');
    return std::any_of(marks.begin(), marks.end(), [&](const std::string& mark) {
      return std::find(carried.begin(), carried.end(), mark) != carried.end();
    });
  }
  return false;
}

ProcessStatus StatusOf(pid_t pid) {
  ProcessStatus status;
  const std::string line = TextOfFile(absl::StrCat("/proc/", pid, "/stat"));
  const std::size_t name_ends = line.rfind(')');
  if (name_ends == std::string::npos) return status;
  constexpr unsigned kEnding = 4;  // PF_EXITING of the kernel
  std::istringstream fields(line.substr(name_ends + 1));
  int unused = 0;
  unsigned flags = 0;
  fields >> status.state >> status.parent >> status.group;
  for (int field = 0; field < 3; ++field) fields >> unused;  // session, terminal and its group
  fields >> flags;
  status.ending = (flags & kEnding) != 0;
  return status;
}

std::set<pid_t> AdoptedChildren() {
  std::ifstream file(absl::StrCat("/proc/self/task/", getpid(), "/children"));
  std::set<pid_t> children;
  for (pid_t child = 0; file >> child;) children.insert(child);
  return children;
}

std::set<pid_t> KillWithDescendants(const std::set<pid_t>& roots) {
  const std::map<pid_t, Process> all = AllProcesses();
  std::set<pid_t> condemned = roots;
  AddDescendants(all, ThisAndThoseAbove(all), condemned);
  std::erase_if(condemned, [&](pid_t pid) {
    const auto process = all.find(pid);
    if (process == all.end()) return true;
    const FileDescriptor held = Hold(pid, process->second);
    return !held.open() || syscall(SYS_pidfd_send_signal, held.get(), SIGKILL, nullptr, 0) != 0;
  });
  return condemned;
}

absl::StatusOr<std::size_t> EndMarkedProcesses(const std::vector<std::string>& marks,
                                               std::chrono::milliseconds within) {
  const auto until = std::chrono::steady_clock::now() + within;
  std::size_t killed = 0;
  // Once more, until there is none: a process may have forked just before it was killed.
  while (true) {
    const std::map<pid_t, Process> all = AllProcesses();
    std::vector<std::pair<pid_t, FileDescriptor>> held;
    for (const pid_t pid : Condemned(all, marks)) {
      FileDescriptor descriptor = Hold(pid, all.at(pid));
      if (descriptor.open()) held.emplace_back(pid, std::move(descriptor));
    }
    // Zombies among the descendants have ended: they only wait for their parents to see it.
    const auto now = std::chrono::steady_clock::now();
    std::erase_if(held, [now](const auto& process) { return AwaitEnd(process.second, now); });
    if (held.empty()) return killed;
    for (const auto& [pid, descriptor] : held) {
      syscall(SYS_pidfd_send_signal, descriptor.get(), SIGKILL, nullptr, 0);
    }
    killed += held.size();
    std::vector<std::string> left;
    for (const auto& [pid, descriptor] : held) {
      if (!AwaitEnd(descriptor, until)) left.push_back(absl::StrCat(pid));
    }
    if (left.empty() && std::chrono::steady_clock::now() < until) continue;
    return absl::DeadlineExceededError(absl::StrCat(
        "processes that do not end although they were killed: ",
        left.empty() ? "new ones are started all the time" : absl::StrJoin(left, ", ")));
  }
}

}  // namespace espalier
