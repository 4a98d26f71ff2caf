#pragma once

#include <optional>
#include <vector>

#include "tuner.pb.h"
#include "tuner/api/tuner.h"
#include "tuner/base/status.h"
#include "tuner/core/change.h"
#include "tuner/core/event.h"

namespace espalier {

inline constexpr int kMaxSlotsPerNode = 4096;
inline constexpr int kMaxGpusPerNode = 1024;
inline constexpr std::size_t kMaxNodeName = 256;  // bytes
inline constexpr std::size_t kMaxNodePath = 4096;

struct ReplicaPid {
  ReplicaId replica;
  int pid = 0;
};

// What an agent's message means to the core, and the process ids it names.
struct FromAgent {
  std::optional<Event> event;  // none: a heartbeat, or a kind this service does not know
  std::vector<ReplicaPid> pids;
  std::vector<NodeGpu> gpus = {};  // of a Hello
  std::string folder = {};         // likewise: of its trials' files
};

// An AgentLeaving comes without its node, which whoever holds the stream knows.
// INVALID_ARGUMENT, naming the replica, the field and its value, for what the core must not see.
absl::StatusOr<FromAgent> FromProto(const v1::AgentMessage& message);

// What the command's agent is to be told. StartReplica is filled from `state`.
v1::ServiceMessage ToProto(const Command& command, const TunerState& state);

NodeId NodeOf(const Command& command);

}  // namespace espalier
