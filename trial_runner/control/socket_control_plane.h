#pragma once

#include <memory>
#include <optional>
#include <string>

#include "trial_runner/elastic/control_plane.h"

namespace espalier {

// How a replica ends when the agent at the other end of its socket is gone.
inline constexpr int kAgentGoneExitCode = 75;

struct SocketControlOptions {
  double lease_s = 0;   // sends a heartbeat at once and every quarter of it; 0: none
  bool spares = false;  // the agent keeps replicas that leave their group
  // Why the agent cannot fork this program, "" if it can (see fork_point.h); nullopt: it must not
  // be forked.
  std::optional<std::string> fork_obstacle{};
};

// The control plane over a connected stream socket that the agent handed down: messages of
// control.proto, each after its length in four bytes, least significant first; a Greeting first. A
// thread reads; it
// ends the process with kAgentGoneExitCode when the socket closes or carries what is no message.
// Takes over the descriptor. Lives until the process ends or the socket is shut down by its
// destructor.
std::unique_ptr<ControlPlane> MakeSocketControlPlane(int socket,
                                                     const SocketControlOptions& options = {});

}  // namespace espalier
