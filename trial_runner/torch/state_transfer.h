#pragma once

#include "absl/status/status.h"
#include "trial_runner/collectives/collectives.h"
#include "trial_runner/control/group_progress.h"
#include "trial_runner/torch/shared_state.h"

namespace espalier {

// How a member comes to EqualiseState.
struct Readiness {
  // Its program is in its training loop, and cannot go back to an earlier state.
  bool running = false;
  // It expects others to be behind it, so it makes its offer before anybody is asked: one exchange
  // less where it is right, and the offer for nothing where it is not.
  bool offers = false;
};

// Brings all members of a group that has just formed to the state of the furthest of them. Those
// who are behind take it from one of those who are furthest, each from another as far as there are
// enough, straight into their tensors' memory; members that are equal send nothing twice and
// receive nothing. What is moved is counted in `progress`, of the phase kHandingOver.
//
// Ends with kAborted or kUnavailable if the group is lost on the way; any other error is for the
// replica to end with.
absl::Status EqualiseState(Collectives& collectives, SharedState& state, int rank, int size,
                           Readiness readiness, GroupProgress& progress);

}  // namespace espalier
