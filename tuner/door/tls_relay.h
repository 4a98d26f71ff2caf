#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/file_descriptor.h"
#include "tuner/door/first_call.h"
#include "tuner/door/tls_server.h"

namespace espalier {

inline constexpr double kRelayDrain_s = 1;  // for what is under way when it ends

// A connection that has been let in: TLS on one side, the service's end on the other.
struct RelayedConnection {
  FileDescriptor socket;
  TlsPtr tls;             // over it, after the handshake
  FileDescriptor inside;  // of a pair of sockets, whose other end the service has
  HeaderBlocks blocks{};  // of what the client says, up to here
};

// Carries what clients say over TLS to the service in the clear, and back, within this process. A
// thread of its own for all connections; each holds what one side has not taken yet, 64 KiB for
// each direction, and costs nothing while it is silent. A client that sends a header block beyond
// kMaxHeaderBlock is cut off.
class TlsRelay {
 public:
  static std::unique_ptr<TlsRelay> Start();
  // What the service has said last is delivered, if it is taken within kRelayDrain_s.
  virtual ~TlsRelay() = default;

  virtual void Add(RelayedConnection connection) = 0;  // from any thread
};

}  // namespace espalier
