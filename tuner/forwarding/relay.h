#pragma once

#include "base/status.h"
#include "tuner/forwarding/forwarder.h"

namespace espalier {

// Forwards one accepted connection, which does not block and stays the caller's, until it has
// ended, was idle for too long or `cancelled` is readable. On a thread that has SIGPIPE blocked.
// The error says why the service was not reached.
absl::Status RelayConnection(int client, const ForwarderOptions& options, int cancelled);

}  // namespace espalier
