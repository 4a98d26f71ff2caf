#include "trial_runner/collectives/rendezvous/listening_ports.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace espalier {
namespace {

thread_local ListeningPorts* present = nullptr;

int SystemBind(int socket, const void* address, socklen_t size) {
  return static_cast<int>(syscall(SYS_bind, socket, address, size));
}

// The address's port, in network order; nullptr: it is not one of the internet.
in_port_t* PortIn(sockaddr_storage& address) {
  switch (address.ss_family) {
    case AF_INET:
      return &reinterpret_cast<sockaddr_in&>(address).sin_port;
    case AF_INET6:
      return &reinterpret_cast<sockaddr_in6&>(address).sin6_port;
    default:
      return nullptr;
  }
}

// Processes of one machine share the range: they begin at different places.
int NextPort(const PortRange& range) {
  static std::atomic<std::uint32_t> turn{static_cast<std::uint32_t>(getpid()) * 2654435761U >> 8};
  return range.low + static_cast<int>(turn++ % static_cast<std::uint32_t>(range.size()));
}

// While a socket allows its port to be shared, two could bind the same one and only listen() would
// tell: it is bound as one that does not.
int BindAlone(int socket, const sockaddr_storage& address, socklen_t size) {
  int shared = 0;
  socklen_t shared_size = sizeof shared;
  getsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &shared, &shared_size);
  const int alone = 0;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &alone, sizeof alone);
  const int result = SystemBind(socket, &address, size);
  const int error = errno;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &shared, sizeof shared);
  errno = error;
  return result;
}

}  // namespace

ListeningPorts::ListeningPorts(const PortRange& range) : range_(range), outer_(present) {
  present = this;
}

ListeningPorts::~ListeningPorts() { present = outer_; }

int BindInTurn(int socket, const void* address, unsigned size) noexcept {
  sockaddr_storage wanted{};
  if (present == nullptr || present->range_.any() || size > sizeof wanted) {
    return SystemBind(socket, address, size);
  }
  std::memcpy(&wanted, address, size);
  in_port_t* port = PortIn(wanted);
  if (port == nullptr || *port != 0) return SystemBind(socket, address, size);
  for (int tried = 0; tried < present->range_.size(); ++tried) {
    *port = htons(static_cast<in_port_t>(NextPort(present->range_)));
    if (BindAlone(socket, wanted, size) == 0) {
      ++present->bound_;
      return 0;
    }
    if (errno != EADDRINUSE) return -1;
  }
  errno = EADDRINUSE;
  return -1;
}

}  // namespace espalier

// Takes the place of the C library's: LibTorch looks it up in the program first.
extern "C" __attribute__((visibility("default"))) int bind(int socket, const sockaddr* address,
                                                           socklen_t size) noexcept {
  return espalier::BindInTurn(socket, address, size);
}
