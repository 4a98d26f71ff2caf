#pragma once

#include <CLI/CLI.hpp>

#include "trial_runner/agent/agent.h"
#include "tuner/base/status.h"

namespace espalier {

// What `tuner agent` and `tuner run` accept about the machine whose slots they offer.
struct NodeArguments {
  int slots = -1;  // as many as the machine has
  double replica_lease_s = kDefaultReplicaLease_s;

  void AddTo(CLI::App& app);
  // Sets slots and all that replicas are given.
  absl::Status Resolve(AgentOptions& options) const;
};

}  // namespace espalier
