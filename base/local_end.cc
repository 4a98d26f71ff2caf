#include "base/local_end.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>

namespace espalier {

HostPort LocalEnd(int socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return {};
  HostPort end;
  if (bound.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(bound);
    inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    end.port = ntohs(v6.sin6_port);
  } else {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(bound);
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    end.port = ntohs(v4.sin_port);
  }
  end.host = text.data();
  return end;
}

bool IsLoopback(const std::string& address) {
  return address == "::1" || address.starts_with("127.");
}

}  // namespace espalier
