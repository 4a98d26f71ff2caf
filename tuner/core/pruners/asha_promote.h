#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier {

// Asynchronous successive halving (Li et al., MLSys 2020) in its promoting form: a trial that
// reaches a rung (rungs.h) and is not among the best 1/eta there, at least one, is paused, not
// ended. It keeps its checkpoint, and goes on when it comes into the best 1/eta as more trials
// arrive and slots are free, before new configurations are started. Who is still paused when
// nothing else is left to run is ended by the core; so is at once a program that cannot be paused.
// A newest value that is not a number ends a trial.
//
// Whether a paused trial may go on follows from the curves alone: nothing has to be remembered.
//
// Options: those of "asha".
absl::StatusOr<std::unique_ptr<Pruner>> MakeAshaPromote(const Options& options);

}  // namespace espalier
