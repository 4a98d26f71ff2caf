#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier {

// By rank first, by promise then. Before step `promise_from` ASHA's rungs (asha.h) cull the many at
// equal steps, which needs no model and no curve. From there on the promise model (promise.h) ends
// those that have little chance beside the others: rank says less than their curves, and the few
// long runs at the end are most of a study's work.
//
// Options: min_steps, eta as ASHA's; promise_from (0: the second rung, so that only the first is by
// rank); risk (0.16); threshold, cost_weight, min_trials, best_k as the promise pruner's.
absl::StatusOr<std::unique_ptr<Pruner>> MakeAshaPromise(const Options& options);

}  // namespace espalier
