#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/host_port.h"
#include "base/status.h"
#include "tuner/credentials/socket_owner.h"

namespace espalier {

// within which a stranger has to say something
inline constexpr double kFirstByte_s = 10;
inline constexpr std::size_t kMaxSilentStrangers = 256;  // then the longest silent is closed

// Listens at an address and holds new connections until something comes on them: a descriptor and a
// few words each, no thread and no buffer, however many there are. A connection that waits longer
// than kFirstByte_s, or longest of too many, is closed; those of users that `trusts` accepts may be
// silent. Uses one thread.
class SilentConnections {
 public:
  using Trusts = std::function<bool(const Peer&)>;
  // Takes over the socket, which does not block. On the thread, must not wait.
  using Begun = std::function<void(int socket, bool trusted)>;

  // At all addresses of the host, with one port; 0 takes any free one. The error names the address.
  static absl::StatusOr<std::unique_ptr<SilentConnections>> Listen(HostPort address, Trusts trusts,
                                                                   Begun begun);
  virtual ~SilentConnections() = default;  // closes those that are silent still

  virtual const HostPort& address() const = 0;  // with the port
};

}  // namespace espalier
