#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "trial_runner/agent/processes/launch.h"

namespace espalier {

// A command that runs a program of machine code by itself: `./train --epochs 3`.
struct NativeCommand {
  std::string path;       // of its file, as it is found from here
  std::string directory;  // in which its zygote starts
};

// nullopt: the command is something else, such as a script. Looks for the program on disk.
std::optional<NativeCommand> ReadNativeCommand(const LaunchOrder& order);

// What the program has read by the time it makes its Trial, as one text: processes with the same
// one may be forked from the same zygote. That is its file, its arguments, the folder it is started
// in, and all of the environment but what makes a process a replica.
std::string ZygoteKey(const LaunchOrder& order, const NativeCommand& command);

// The environment in which a zygote for this order runs.
std::map<std::string, std::string> NativeZygoteEnvironment(const LaunchOrder& order);

// Whether it is the program itself that runs in the process, not something that it has executed.
bool RunsProgram(pid_t pid, const std::string& path);

// Whether a file that the process runs code from is no longer where it was, because it has been
// built or installed anew.
bool RunsReplacedFiles(pid_t pid);

}  // namespace espalier
