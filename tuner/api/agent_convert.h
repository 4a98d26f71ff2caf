#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"
#include "tuner.pb.h"
#include "tuner/api/tuner.h"
#include "tuner/core/state/change.h"
#include "tuner/core/state/event.h"

namespace espalier {

inline constexpr int kMaxSlotsPerNode = 4096;
inline constexpr int kMaxGpusPerNode = 1024;
inline constexpr std::size_t kMaxNodeName = 256;  // bytes
inline constexpr std::size_t kMaxNodePath = 4096;
inline constexpr std::size_t kMaxCheckpointName = 1024;  // bytes
inline constexpr std::size_t kMaxFingerprint = 128;      // likewise
inline constexpr int kMaxHeldCheckpoints = 100'000;      // in a Hello

struct ReplicaPid {
  ReplicaId replica;
  int pid = 0;
};

// What a Hello says of its node beside the event.
struct NodeDetails {
  std::vector<ReplicaPid> pids;  // of its live replicas
  std::vector<NodeGpu> gpus;
  std::string folder;  // of its trials' files
};

// The address at which a node's replicas are reached, from a CheckpointServerOpen.
struct NodeHost {
  std::string node_name;
  std::string host;
};

// What an agent's message means to the core, and what the service notes of it besides.
struct FromAgent {
  std::optional<Event> event;  // none: a heartbeat, or a kind this service does not know
  std::variant<std::monostate, NodeDetails, ReplicaPid, NodeHost> details{};
};

// An AgentLeaving and a CheckpointCopied come without their node, which the owner of the stream
// knows. INVALID_ARGUMENT: the core must not see the message; the error names the replica, the
// field and its value.
absl::StatusOr<FromAgent> FromProto(const v1::AgentMessage& message);

// The message that carries the command to its agent. StartReplica is filled from `state`. Where it
// names sources of a checkpoint it does not say how to reach them: see SourcesOf.
v1::ServiceMessage ToProto(const Command& command, const TunerState& state);

// The nodes that the command names as sources, and the part of its message that lists them. Null:
// it names none.
struct CommandSources {
  std::vector<NodeId> nodes;
  v1::CheckpointSources* told = nullptr;
  std::string study;
  std::int64_t trial_number = 0;
};
CommandSources SourcesOf(const Command& command, v1::ServiceMessage& message);

NodeId NodeOf(const Command& command);

}  // namespace espalier
