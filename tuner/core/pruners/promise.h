#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier {

// Ends a trial when the promise model (tuner/core/promise) leaves it little chance of ending among
// the study's best k: its promise is below `threshold`, and below `share` of the most promising
// trial's. The second keeps many equal trials from being ended while nobody stands out. Curves are
// compared where they are expected to end, so a slow starter that catches up is kept where the
// study's curves show that such trials do.
//
// Never ended are the most promising trial, one whose value is the best that any trial has had up
// to that step, and any trial while fewer than min_trials have reported. A trial is judged at its
// first report, and again each time that its step has grown by a sixteenth; a newest value that is
// not a number ends it at once.
//
// Options: threshold (0.2), share (0.25), both in (0, 1); min_steps (1), no verdict before;
// min_trials (3), at least 2; best_k (0), the k to end among, 0: the study's own.
absl::StatusOr<std::unique_ptr<Pruner>> MakePromise(const Options& options);

}  // namespace espalier
