#pragma once

#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "trial_runner/elastic/control_plane.h"

namespace espalier {

// Serialized espalier.v1.ReplicaMessage, without length prefix.
std::string EncodeReplicaWord(const ReplicaWord& word);

// A serialized ReplicaMessage that says no more than that this process runs.
std::string EncodeHeartbeat();

// The same, that it has left its group and can be adopted.
std::string EncodeParked();

// From a serialized espalier.v1.ReplicaCommand.
using ReplicaOrder = std::variant<Membership, Adoption>;
absl::StatusOr<ReplicaOrder> DecodeOrder(const std::string& bytes);

}  // namespace espalier
