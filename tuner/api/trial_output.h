#pragma once

#include "tuner.pb.h"
#include "tuner/api/tuner.h"

namespace espalier::api {

// What the processes of a trial have printed on each node on which it ran, the newest of it. Waits
// for agents: not on the owner's thread. NOT_FOUND says where it is, where no agent can be asked
// for it; FAILED_PRECONDITION: a client runs the trial.
absl::StatusOr<v1::TrialOutput> GetTrialOutput(Tuner& tuner, const v1::TrialOutputRequest& request);

}  // namespace espalier::api
