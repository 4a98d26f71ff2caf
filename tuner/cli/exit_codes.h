#pragma once

#include "base/status.h"

namespace espalier {

// What `tuner` exits with. Scripts rely on these numbers; `tuner --help` lists them.
enum class ExitCode {
  kOk = 0,
  kFailed = 1,        // the study failed, or an error while running
  kBadInput = 2,      // refused before anything was started
  kUnreachable = 3,   // no service answered
  kNotFound = 4,      // no such study, trial, node or token
  kInterrupted = 130  // Ctrl-C, or the study was stopped before its end
  // Also a service's kStepFailedExitCode and kCommitFailedExitCode: tuner/server/loop/loop.h.
};

inline constexpr const char* kExitCodesHelp =
    "Exit codes:\n"
    "  0    ok\n"
    "  1    the study failed, or an error while running\n"
    "  2    bad input, refused before anything was started\n"
    "  3    no service answered\n"
    "  4    no such study, trial, node or token\n"
    "  70   the service met an error of its own; start it again, and it goes on\n"
    "  74   the service could not write its database; likewise, when that is mended\n"
    "  130  interrupted, or the study was stopped before its end\n";

// The exit code for an error of a service or of reading input.
ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace espalier
