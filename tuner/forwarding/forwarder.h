#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "tuner/credentials/tls_connection.h"

namespace espalier {

inline constexpr std::size_t kMaxForwardedConnections = 256;  // the next ones wait to be accepted
inline constexpr std::size_t kForwardedBytes = 64 << 10;      // of a connection's direction, kept
inline constexpr double kForwardedDial_s = 10;    // for the service to answer, handshake included
inline constexpr double kForwardedFirst_s = 60;   // for a client to say something
inline constexpr double kForwardedIdle_s = 3600;  // without a byte in either direction
inline constexpr double kForwardedLast_s = 60;    // for one side, when the other has said all

struct ForwarderLimits {
  std::size_t connections = kMaxForwardedConnections;
  double dial_s = kForwardedDial_s;
  double first_s = kForwardedFirst_s;
  double idle_s = kForwardedIdle_s;
  double last_s = kForwardedLast_s;
};

struct ForwarderOptions {
  std::string service{};  // HOST:PORT
  TlsTrust trust{};       // none: the service is spoken to in the clear
  std::string token{};    // added to each request; empty: bytes go as they come
  ForwarderLimits limits{};
  // Told why a connection was not forwarded, on any thread; the same reason once a minute.
  std::function<void(const absl::Status&)> failed{};
};

// Carries the bytes of connections to a port of loopback to a service and back, over TLS where it
// is known by a certificate: programs that speak no TLS, and know neither address nor certificate,
// reach the service by it, with gRPC or HTTP. Who they are they show themselves, in what they send,
// unless a token is added for them (added_token.h).
//
// The kernel is asked which user owns each connection: those of this user are forwarded,
// all others are closed unread. So the port gives no other user the rights that the service gives
// to this process's user.
//
// The service is dialled when a client has said its first word. If it does not answer the client's
// connection is closed, as a service that goes away does. One thread that accepts, one more a
// connection.
class Forwarder {
 public:
  // `listener`: a socket of loopback that listens and does not block, which it takes over.
  static std::unique_ptr<Forwarder> Start(int listener, ForwarderOptions options);
  virtual ~Forwarder() = default;  // ends connections under way

  virtual const std::string& address() const = 0;  // HOST:PORT where it listens
  virtual int listener() const = 0;                // stays its own
  virtual std::size_t connections() const = 0;     // under way
};

}  // namespace espalier
