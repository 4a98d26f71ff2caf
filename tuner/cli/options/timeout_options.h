#pragma once

#include "base/status.h"
#include "tuner/core/state/study.h"

namespace espalier {

class CliCommand;

// Options of the service: how long the replicas of trials may take for each task, where their study
// says nothing.
void AddTimeoutsTo(CliCommand& command, TrialTimeouts& timeouts);
// Refuses times of less than a second, by the option's name.
absl::Status CheckTimeouts(const TrialTimeouts& timeouts);

}  // namespace espalier
