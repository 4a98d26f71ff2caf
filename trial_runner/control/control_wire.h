#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "trial_runner/elastic/control_plane.h"

namespace espalier {

// Serialized espalier.v1.ReplicaMessage, without length prefix.
std::string EncodeReplicaWord(const ReplicaWord& word);

// A serialized ReplicaMessage that says no more than that this process runs.
std::string EncodeHeartbeat();

// From a serialized espalier.v1.ReplicaCommand that is a Regroup.
absl::StatusOr<Membership> DecodeMembership(const std::string& bytes);

}  // namespace espalier
