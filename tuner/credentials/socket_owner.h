#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace espalier {

// What is known of the user that owns the other end of an accepted TCP connection.
enum class PeerKind {
  kOwnUser,    // this user's process on this machine
  kOtherUser,  // another user's of this machine, or unknown
  kElsewhere,  // not on loopback
};

struct Peer {
  PeerKind kind = PeerKind::kElsewhere;
  std::optional<uid_t> user;  // where the kernel says so
  std::string address;        // without the port
};

// Whether a socket of `owner` is that of the user `own`. Root is no exception: on loopback its
// connections may come from a container that shares the machine's network. To a process in a user
// namespace that does not hold all users (`uid_map`, as /proc/self/uid_map has it), all others are
// called nobody, so that nobody knows its own.
bool IsOwnUser(uid_t owner, uid_t own, std::string_view uid_map);

// Asks the kernel which user owns the client's socket. A socket that no process holds any more
// (closed right after its request was sent) has no owner: the kernel reports 0 for it, which is not
// root.
Peer AskWhoConnected(int accepted_socket);

}  // namespace espalier
