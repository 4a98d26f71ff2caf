#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace espalier {

struct ProgramRun {
  std::vector<std::string> command;  // looked for in PATH, run without a shell
  std::string input{};               // on its standard input
  double limit_s = 30;
  // Asked again and again while it runs; an error ends it, and is what RunProgram returns.
  std::function<absl::Status(pid_t pid)> watch{};
};

struct ProgramEnd {
  int exit_code = 0;  // 128 and the signal, where one ended it
  std::string output;
  std::string errors;  // of standard error
};

inline constexpr std::size_t kMostProgramOutput = 16 << 20;

// Runs a program and waits for it. Where its time is over, or it says too much, it is killed with
// all that is in its process group. NotFound: it cannot be started. DeadlineExceeded: its time is
// over. ResourceExhausted: it says too much. Errors name the program. It sees our environment but
// for what a batch system has told of our own job (SLURM_*), where that is no place to find the
// system (SLURM_CONF).
absl::StatusOr<ProgramEnd> RunProgram(const ProgramRun& run);

// What a program says of why it failed: its last line of errors that is not empty, else its exit
// code.
std::string FailureOf(const std::string& program, const ProgramEnd& end);

}  // namespace espalier
