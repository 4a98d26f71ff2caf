#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/status.h"

namespace espalier {

// What becomes a program's standard input, output and errors.
struct StandardFiles {
  int in;
  int out;
  int errors;
};

// Starts a program, which is looked for in PATH, without a shell. It has a process group of its
// own, so that all of it can be killed and no signal of our terminal comes to it, blocks and
// ignores no signal, and sees no other file of ours. Returns its process. NotFound: it cannot be
// started.
absl::StatusOr<pid_t> SpawnProgram(std::vector<std::string> command,
                                   std::vector<std::string> environment,
                                   const StandardFiles& files);

}  // namespace espalier
