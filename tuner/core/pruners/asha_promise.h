#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier {

// ASHA's rungs (asha.h), and between and beyond them the promise model's verdict (promise.h) on
// trials that have come to step `promise_from`: the many are culled by rank at equal steps, which
// needs no model, and the few that are left end as soon as they have little chance beside the best.
//
// Options: min_steps, eta, max_steps as ASHA's; promise_from (9); threshold (0.2), share (0.3),
// min_trials, best_k as the promise pruner's.
absl::StatusOr<std::unique_ptr<Pruner>> MakeAshaPromise(const Options& options);

}  // namespace espalier
