#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/launch_kinds.h"

namespace espalier {

// What a launcher starts for each rank in place of the study's command: a small process that runs
// the command in a process group of its own, with a log of its own, and tells the supervisor
// (supervisor.h) how it ends. It ends with the command's code or signal once all ranks have ended,
// so that no launcher has anything to decide.
//
// Where the runner was forked from a zygote (zygotes/zygote.h), so is the command.
//
// SIGTERM, from whomever it comes and however often, is one SIGTERM to the command's first process;
// when that has ended, what is left of its group is killed. If the runner is killed, or the
// supervisor is gone, so is the command.

// The words that run it: `program` is this program.
std::vector<std::string> RunnerWords(const std::string& program, const std::string& address,
                                     const std::string& replica_log, bool adds_rank,
                                     const LaunchKind& kind);

// The exit code, if this process was started by such words.
std::optional<int> RunRank(int argc, const char* const* argv);

// In the environment of launchers that number GPUs by themselves: CUDA_VISIBLE_DEVICES as it was.
inline constexpr const char* kRankGpusVariable = "ESPALIER_RANK_GPUS";

// Ends this process by the same signal, without another core file; where that is not possible, with
// the code by which shells tell of it.
[[noreturn]] void EndBySignal(int signal);

}  // namespace espalier
