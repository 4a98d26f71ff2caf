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
     "Seconds within which a process that will join an elastic trial's group must be ready",
     &TrialTimeouts::start_s},
    {"stall_timeout_s", "--stall-timeout",
     "Seconds without progress after which forming a group or handing over its state starts again",
     &TrialTimeouts::stall_s},
    {"pause_timeout_s", "--pause-timeout",
     "Seconds within which a pausing group must save a checkpoint and leave",
     &TrialTimeouts::pause_s},
    {"exit_timeout_s", "--exit-timeout",
     "Seconds within which an elastic trial's processes must exit after its end",
     &TrialTimeouts::exit_s},
    {"drain_timeout_s", "--drain-timeout",
     "Seconds before a node goes away in which its trials must save and leave it",
     &TrialTimeouts::drain_s},
}};

}  // namespace espalier
