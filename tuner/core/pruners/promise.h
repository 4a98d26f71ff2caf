#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier {

// Ends a trial when the promise model (tuner/core/promise) leaves it little chance of ending among
// the study's best k: its promise is below `threshold`, and it and all live trials that have no
// more have less than `risk` of the k best together. The second keeps many equal trials from being
// ended while nobody stands out, and bounds what is risked at a time however many trials there are.
// Curves are compared where they are expected to end, so a slow starter that catches up is kept
// where the study's curves show that such trials do.
//
// The bars move. `risk` is meant for 128 trials of which each holds an eighth of the pool at the
// least; it falls with the root of the number of trials, each of which is a risk, and grows with
// the root of that share, up to twice as much: in a large pool a trial takes little from others.
// With c times the time left to its last step that the most promising trial has, a trial needs
// c^cost_weight times as much of a chance, a third to three times: who is slow holds up the study's
// end.
//
// Never ended are the most promising trial, one whose value is the best that any trial has had up
// to that step, and any trial while fewer than min_trials have reported. A trial is judged at its
// first report, and again each time that its step has grown by a sixteenth; a newest value that is
// not a number ends it at once.
//
// Options: threshold (0.3), risk (0.1), cost_weight (0.5), all in (0, 1); min_steps (1), no verdict
// before; min_trials (3), at least 2; best_k (0), the k to end among, 0: the study's own.
absl::StatusOr<std::unique_ptr<Pruner>> MakePromise(const Options& options);

}  // namespace espalier
