#pragma once

#include "tuner.pb.h"
#include "tuner/api/tuner.h"

namespace espalier::api {

// The newest part of what the processes of a trial have printed on each node on which it ran. Waits
// for agents, so it must not be called on the owner's thread. NOT_FOUND: no agent can be asked for
// it; the error says where it lies. FAILED_PRECONDITION: a client runs the trial.
absl::StatusOr<v1::TrialOutput> GetTrialOutput(Tuner& tuner, const v1::TrialOutputRequest& request);

}  // namespace espalier::api
