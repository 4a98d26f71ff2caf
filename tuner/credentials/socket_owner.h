#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace espalier {

// What is known of the user that owns the other end of an accepted TCP connection.
enum class PeerKind {
  kOwnUser,    // this user's process on this machine, or root's
  kOtherUser,  // another user's of this machine, or unknown
  kElsewhere,  // not on loopback
};

struct Peer {
  PeerKind kind = PeerKind::kElsewhere;
  std::optional<uid_t> user;  // where the kernel says so
  std::string address;        // without the port
};

// Asks the kernel which user owns the client's socket. A socket that no process holds any more
// (closed right after its request was sent) has no owner: the kernel reports 0 for it, which is not
// root.
Peer AskWhoConnected(int accepted_socket);

}  // namespace espalier
