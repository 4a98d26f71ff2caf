#pragma once

#include "base/status.h"
#include "tuner/server/optuna/optuna_options.h"

namespace espalier {

class CliCommand;

// Options of the service: which Python asks Optuna's samplers, and within which bounds.
void AddOptunaTo(CliCommand& command, OptunaOptions& options);
// Makes the folders absolute. Refuses what is not there and bounds that make no sense, by the
// option's name.
absl::Status ResolveOptuna(OptunaOptions& options);

}  // namespace espalier
