#include "tuner/forwarding/loopback_listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/host_port.h"

namespace espalier {
namespace {

constexpr int kWaitingForUs = 512;  // connections that the kernel keeps until they are taken

struct LoopbackEnd {
  sockaddr_storage address{};
  socklen_t size = 0;
};

bool ReadLoopbackEnd(const HostPort& where, LoopbackEnd& end) {
  const std::string host = where.host == "localhost" ? "127.0.0.1" : where.host;
  const in_port_t port = htons(static_cast<in_port_t>(where.port));
  auto& v4 = reinterpret_cast<sockaddr_in&>(end.address);
  if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = port;
    end.size = sizeof(v4);
    return (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
  }
  auto& v6 = reinterpret_cast<sockaddr_in6&>(end.address);
  if (inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) != 1) return false;
  v6.sin6_family = AF_INET6;
  v6.sin6_port = port;
  end.size = sizeof(v6);
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

}  // namespace

bool NamesLoopback(const std::string& host) {
  LoopbackEnd end;
  return ReadLoopbackEnd({host, 0}, end);
}

absl::StatusOr<int> ListenOnLoopback(const std::string& address) {
  ESPALIER_ASSIGN_OR_RETURN(const HostPort where, ParseHostPort(address));
  LoopbackEnd end;
  if (!ReadLoopbackEnd(where, end)) {
    return absl::InvalidArgumentError(
        absl::StrCat("address \"", address,
                     "\": what is forwarded is for this machine alone; 127.0.0.1:PORT or "
                     "[::1]:PORT is needed"));
  }
  const int listener = socket(end.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int error = errno;
  if (listener >= 0) {
    const int yes = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(listener, reinterpret_cast<const sockaddr*>(&end.address), end.size) == 0 &&
        listen(listener, kWaitingForUs) == 0) {
      return listener;
    }
    error = errno;
    close(listener);
  }
  return absl::FailedPreconditionError(absl::StrCat("cannot listen on ", address, ": ",
                                                    std::strerror(error), "; choose another port"));
}

absl::StatusOr<int> ListenOnAnyLoopback() {
  const absl::StatusOr<int> listener = ListenOnLoopback("127.0.0.1:0");
  return listener.ok() ? listener : ListenOnLoopback("[::1]:0");
}

}  // namespace espalier
