#pragma once

#include "absl/status/status.h"
#include "trial_runner/collectives/collectives.h"
#include "trial_runner/control/group_progress.h"
#include "trial_runner/torch/group/shared_state.h"

namespace espalier {

// How a member comes to EqualiseState.
struct Readiness {
  // Its program is in its training loop, and cannot go back to an earlier state.
  bool running = false;
  // It expects others to be behind it, so it makes its offer before it is asked: this saves one
  // exchange if it is right, and wastes the offer if it is not.
  bool offers = false;
};

// Brings all members of a group that has just formed to the state of the furthest of them. Members
// that are behind receive it from one of the furthest, each from a different one as far as there
// are enough, straight into their tensors' memory; members that are equal send nothing twice and
// receive nothing. The bytes moved are counted in `progress`, in the phase kHandingOver.
//
// Ends with kAborted or kUnavailable if the group is lost on the way; any other error is for the
// replica to end with.
absl::Status EqualiseState(Collectives& collectives, SharedState& state, int rank, int size,
                           Readiness readiness, GroupProgress& progress);

// All members get what `root` offers, whatever their states' orders are.
absl::Status BroadcastState(Collectives& collectives, SharedState& state, int rank, int root);

}  // namespace espalier
