#pragma once

#include <CLI/CLI.hpp>

#include "tuner/base/status.h"
#include "tuner/core/state/study.h"

namespace espalier {

// Options of who runs a service: how long the replicas of trials may take for this and that, where
// their study says nothing.
void AddTimeoutsTo(CLI::App& app, TrialTimeouts& timeouts);
// Refuses what is less than a second, by the option's name.
absl::Status CheckTimeouts(const TrialTimeouts& timeouts);

}  // namespace espalier
