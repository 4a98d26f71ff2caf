#pragma once

#include <sys/socket.h>

#include <functional>

namespace espalier {

// connect() that can be given up: the system's own limit is minutes if there is no answer. `socket`
// must not block. `await` waits until it can be written to; false: the connection is given up, with
// errno. Returns false, with errno, where the socket is not connected; it stays the caller's.
bool Connect(int socket, const sockaddr* to, socklen_t size,
             const std::function<bool(int socket)>& await);

}  // namespace espalier
