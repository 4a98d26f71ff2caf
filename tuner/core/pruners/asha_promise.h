#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier {

// By rank first, by promise then. Up to step `promise_from` ASHA's rungs (asha.h) cull the many at
// equal steps, which needs no model. From there on the promise model (promise.h) ends those of the
// few that have little chance beside the best: rank among a handful says less than their curves,
// and the few long runs at the end are most of a study's work.
//
// Options: min_steps, eta as ASHA's; promise_from (0: a quarter of the study's last step, or 20
// where that is unknown); threshold (0.2), share (0.3), min_trials, best_k as the promise pruner's.
absl::StatusOr<std::unique_ptr<Pruner>> MakeAshaPromise(const Options& options);

}  // namespace espalier
