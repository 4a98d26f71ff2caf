#pragma once

#include <optional>

#include "base/launch_kinds.h"
#include "base/port_range.h"
#include "base/status.h"
#include "trial_runner/agent/processes/launch.h"
#include "tuner.pb.h"

namespace espalier {

// The first process of a trial with a "launch": it starts the launcher, or the ranks themselves,
// and sees that they end together. Its exit code or signal is that of the rank that failed first,
// and which one that was is in a file (rank_files.h); 0: all have ended well.
//
// When one has failed, the others are told to end (SIGTERM) and killed after the study's grace, and
// so they are when one has ended well and others run on for too long. On SIGTERM each rank is told
// once; whoever sent it kills this process when the time is over, and with it go the launcher, the
// ranks, and what these have started in their process groups.
//
// It has one thread, and no part of the agent but what starts processes.

// Puts a supervisor in the place of the replica's own command, if `start` has a launch. Fails where
// the command's program is not there. Where the study names modules to preload, the launcher, or
// the ranks that `tuner` itself starts, may be forked from a process with these imports.
absl::Status SuperviseRanks(const v1::StartReplica& start, const PortRange& ports,
                            LaunchOrder& replica);

// Which ranks of a trial with a launch `start` has here. Its port and paths are not known.
RankPlace RanksHere(const v1::StartReplica& start);

// To be called first in the main function of a program with an agent. The exit code, if this
// process was started as a supervisor or as a rank's runner (rank_runner.h); nothing otherwise.
std::optional<int> RunRanks(int argc, const char* const* argv);

}  // namespace espalier
