#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier {

// Asynchronous successive halving (Li et al., MLSys 2020) in its stopping form: rungs at min_steps
// times the powers of eta, and a trial that reaches a rung goes on if it is among the best 1/eta of
// those that have reached it so far (at least one, ties go on). Nobody waits: while fewer than eta
// trials have reached a rung, all go on. A trial that reports rarely is judged by its first value
// at or after the rung. A newest value that is not a number ends a trial at once.
//
// Options: min_steps (1), the first rung; eta (3), at least 2; max_steps (0, none), the length of a
// trial: rungs at or beyond it are left out, since there a trial ends anyway.
absl::StatusOr<std::unique_ptr<Pruner>> MakeAsha(const Options& options);

}  // namespace espalier
