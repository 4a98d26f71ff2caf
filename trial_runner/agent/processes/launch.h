#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/status.h"

namespace espalier {

// Where a replica finds its end of the control socket (ESPALIER_CONTROL_FD).
inline constexpr int kControlFd = 3;

struct LaunchOrder {
  std::vector<std::string> command;
  std::string directory;  // the command's working directory; must exist
  // Where the command supervises ranks (ranks/supervisor.h) that are to be forked from a process
  // with imports: what each of them runs.
  std::vector<std::string> rank_command{};
  std::map<std::string, std::string> environment;
  std::string log_path;  // output and errors are appended to it
  // CPUs on which it runs, limited to those that this process may use; if none is left: all.
  std::vector<int> cpus;
  // Its study asks for what elastic programs alone can do (StartReplica.expects_elastic).
  bool expects_elastic = false;
  // It is not killed with this process, has a session of its own, and begins with all signals
  // ignored.
  bool outlives = false;
};

struct LaunchedProcess {
  pid_t pid = 0;  // also the id of its process group
  FileDescriptor pidfd;
  FileDescriptor control;  // our end, non-blocking
};

// Starts a command as the leader of a process group of its own. It inherits nothing but null input,
// the log and the control socket, and the kernel kills it when the thread that called this ends
// (unless it outlives this process): call it only from a thread that lives as long as the replicas
// may.
//
// Returns once the program runs. Fails with "cannot start ./train: No such file or directory";
// ResourceExhausted: for want of what is the machine's and not the program's (see OfTheMachine).
absl::StatusOr<LaunchedProcess> Launch(const LaunchOrder& order);

// The same error, as one of the machine on which a replica was to start: it has no room,
// descriptors or processes left, or a folder that cannot be written.
absl::Status OfTheMachine(const absl::Status& error);

// What a replica inherits, and our end of it.
struct InheritedDescriptors {
  FileDescriptor log;
  FileDescriptor control;      // its end
  FileDescriptor our_control;  // non-blocking
};
absl::StatusOr<InheritedDescriptors> OpenInherited(const LaunchOrder& order);

// This process's environment.
std::map<std::string, std::string> OwnEnvironment();

// The path of a command's program, by the PATH of the command's own environment; relative ones are
// taken from its directory.
absl::StatusOr<std::string> FindProgram(const LaunchOrder& order);

}  // namespace espalier
