#pragma once

#include <array>

#include "tuner/core/state/study.h"

namespace espalier {

inline constexpr double kLeastTimeout_s = 1;

// A study's key for one of its timeouts, and the option by which a pool has it for all studies.
struct TimeoutKey {
  const char* key;
  const char* option;
  const char* help;
  double TrialTimeouts::*seconds;
};
inline constexpr std::array<TimeoutKey, 5> kTimeoutKeys = {{
    {"start_timeout_s", "--start-timeout",
     "Seconds until a process that is to join an elastic trial's group is ready",
     &TrialTimeouts::start_s},
    {"stall_timeout_s", "--stall-timeout",
     "Seconds without progress after which forming a group or handing over its state begins anew",
     &TrialTimeouts::stall_s},
    {"pause_timeout_s", "--pause-timeout",
     "Seconds in which a group that pauses saves a checkpoint and leaves", &TrialTimeouts::pause_s},
    {"exit_timeout_s", "--exit-timeout",
     "Seconds in which an elastic trial's processes exit after its end", &TrialTimeouts::exit_s},
    {"drain_timeout_s", "--drain-timeout",
     "Seconds before the end of a node that goes away in which trials save and leave it",
     &TrialTimeouts::drain_s},
}};

}  // namespace espalier
