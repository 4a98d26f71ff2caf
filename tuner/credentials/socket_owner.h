#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace espalier {

// What is known of the user who has the other end of an accepted TCP connection.
enum class PeerKind {
  kOwnUser,    // this user's process on this machine, or root's
  kOtherUser,  // another user's of this machine, or nobody can tell whose
  kElsewhere,  // not on loopback
};

struct Peer {
  PeerKind kind = PeerKind::kElsewhere;
  std::optional<uid_t> user;  // where the kernel says so
  std::string address;        // without the port
};

// Asks the kernel who holds the client's socket. A socket that nobody holds any more (closed right
// after its request was sent) is nobody's: the kernel says 0 of it, which is not root.
Peer AskWhoConnected(int accepted_socket);

}  // namespace espalier
