#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "trial_runner/agent/agent.h"

namespace espalier {

class CliCommand;

// What `tuner agent` and `tuner run` accept about the machine whose slots they offer.
struct NodeArguments {
  std::optional<int> slots;  // none: as many as the machine has
  double replica_lease_s = kDefaultReplicaLease_s;
  std::string gpus;  // empty: those that are there and that CUDA_VISIBLE_DEVICES shows
  std::optional<int> slots_per_gpu;  // none: 1
  std::string spare_memory;          // empty: a share of the machine's
  std::string max_log;               // of a replica; empty: kDefaultMaxLog_bytes
  std::string disk_reserve;          // empty: kDefaultDiskReserve_bytes
  std::string gpu_type;              // empty: as the driver names its GPUs
  double price_per_hour = 0;

  void AddTo(CliCommand& command);
  // Sets slots and all that replicas are given.
  absl::Status Resolve(AgentOptions& options) const;
};

// "512", "64K", "2G": a number of bytes.
absl::StatusOr<std::int64_t> ParseBytes(const std::string& text);

}  // namespace espalier
