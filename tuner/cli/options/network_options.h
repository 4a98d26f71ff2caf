#pragma once

#include <string>

#include "base/status.h"
#include "trial_runner/agent/agent.h"

namespace espalier {

class CliCommand;

// A replica listens at one port for the rendezvous and at one for each group; those of a group that
// was given up stay open for a while.
inline constexpr int kPortsPerSlot = 4;

// What `tuner agent` accepts about where other machines reach its replicas.
struct NetworkArguments {
  std::string address;
  std::string interface;
  std::string port_range;

  void AddTo(CliCommand& command);
  // Refuses addresses and interfaces that this machine does not have. To be called once the slots
  // are known.
  absl::Status Resolve(AgentOptions& options) const;
};

}  // namespace espalier
