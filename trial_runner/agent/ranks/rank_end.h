#pragma once

#include <sys/types.h>

#include <cstdint>
#include <ctime>

#include "base/rank_blame.h"

namespace espalier {

// The clock of a rank's end on this machine, which is that of files.
std::int64_t RankClock_ns();
std::int64_t TimeOfRank_ns(const timespec& time);

// Waits until the child has ended, and takes it from the system.
RankEnd ReapRank(pid_t child);

}  // namespace espalier
