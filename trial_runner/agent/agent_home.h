#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/status.h"

namespace espalier {

// The process that runs, or ran last, as the agent of one node in one directory.
struct AgentRecord {
  pid_t pid = 0;
  std::string start;               // ProcessStart of pid
  std::vector<std::string> marks;  // of runs that may have left processes, the newest last
};

// The part of an agent's directory by which successive agents of one node know of each other:
// <directory>/.agent/<node>, which only this user can read. It holds
//   lock   locked (flock) while an agent of the node lives here
//   run    its AgentRecord
// Agents of other nodes may share the directory, which may lie on a disk that machines share.
class AgentHome {
 public:
  // Locks the home. ALREADY_EXISTS: an agent of this node runs here; the error says what to do
  // about it.
  static absl::StatusOr<AgentHome> Take(const std::string& directory, const std::string& node);
  // The home of an agent that this process replaces: the lock is still held through `lock`.
  static AgentHome TakeOver(const std::string& directory, const std::string& node, int lock);

  // Ends what former runs have left (EndMarkedProcesses); then this process is on record as the
  // agent, with a mark of its own, before it starts anything. What cannot be ended now stays on
  // record for the next one.
  absl::StatusOr<std::string> Begin();
  // Writes the record of a clean end: nothing of the run is left.
  void End() const;

  int lock() const { return lock_.get(); }
  const std::string& folder() const { return folder_; }

 private:
  AgentHome(std::string folder, FileDescriptor lock)
      : folder_(std::move(folder)), lock_(std::move(lock)) {}

  std::string folder_;
  FileDescriptor lock_;
};

// <directory>/.agent/<node>. Pure.
std::string AgentHomeFolder(const std::string& directory, const std::string& node);

// The record there; NOT_FOUND: there is none.
absl::StatusOr<AgentRecord> ReadAgentRecord(const std::string& folder);

}  // namespace espalier
