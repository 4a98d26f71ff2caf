#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "tuner/credentials/certificate.h"
#include "tuner/door/call_head.h"

namespace espalier {

struct GrpcDoorLimits {
  std::size_t strangers = 256;       // then the one that has waited longest goes
  std::size_t held_bytes = 8 << 20;  // of what they have said, together; likewise
  double greeting_s = 10;            // for the handshake and HTTP/2's first word
  double first_call_s = 300;         // for the head of the first call
  int pieces = 256;                  // of what a stranger says, however small
  std::size_t handshake_bytes = 16 << 10;
  double share = 0.1;    // of a processor, for all of them
  double saved_s = 0.5;  // of it, as much as is saved up
};

struct GrpcDoorOptions {
  // Of the server; without a PEM it speaks in the clear.
  Certificate certificate{};
  // What a call is answered that shows this. OK lets its connection in: the server then judges this
  // call and all others itself. Called on the door's thread, must be quick.
  std::function<absl::Status(const CallHead&)> admits{};
  // Takes over a connection that is let in, and what has come on it, both in the clear. On the
  // door's thread.
  std::function<void(int socket, std::string said)> let_in{};
  // Told of each call that is not let in; may be null.
  std::function<void(const absl::Status&)> refused{};
  GrpcDoorLimits limits{};
};

// Stands before a gRPC server: no byte of a connection reaches it before the head of its first call
// has shown what lets it in. The library reads any head before it asks whose it is, and gives
// memory and time without bounds to it (CVE-2023-33953). Here a stranger costs a descriptor, the
// bytes that it has said (kMaxFirstBytes) and, with TLS, a handshake; one thread serves all of them
// and has a share of a processor, of which nothing is taken by those that are let in.
//
// What is let in costs no more, in the clear: the server gets the socket itself. With TLS a thread
// goes on carrying it (TlsRelay), as the server could not take a handshake over.
class GrpcDoor {
 public:
  // The error says what is wrong with the certificate.
  static absl::StatusOr<std::unique_ptr<GrpcDoor>> Open(GrpcDoorOptions options);
  // To be called when the server has ended: what it has said last is delivered.
  virtual ~GrpcDoor() = default;

  // Takes over a socket that does not block, from any thread.
  virtual void Take(int socket) = 0;
  // Lets nobody in any more, and says goodbye to those who wait. Connections that were let in go
  // on.
  virtual void Shut() = 0;
};

}  // namespace espalier
