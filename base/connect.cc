#include "base/connect.h"

#include <cerrno>

namespace espalier {

bool Connect(int socket, const sockaddr* to, socklen_t size,
             const std::function<bool(int socket)>& await) {
  if (connect(socket, to, size) == 0) return true;
  if (errno != EINPROGRESS || !await(socket)) return false;
  int error = 0;
  socklen_t error_size = sizeof error;
  if (getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &error_size) != 0) return false;
  errno = error;
  return error == 0;
}

}  // namespace espalier
