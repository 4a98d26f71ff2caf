#include "tuner/credentials/dial.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/connect.h"
#include "base/host_port.h"

namespace espalier {
namespace {

using SteadyClock = std::chrono::steady_clock;

// A connected socket, or -1 with errno.
int ConnectWithin(const addrinfo& to, const DialLimit& limit) {
  const int socket =
      ::socket(to.ai_family, to.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, to.ai_protocol);
  if (socket < 0) return -1;
  const auto await = [&limit](int connecting) {
    if (AwaitSocket(connecting, POLLOUT, limit)) return true;
    errno = limit.over() ? ETIMEDOUT : ECANCELED;
    return false;
  };
  if (Connect(socket, to.ai_addr, to.ai_addrlen, await)) return socket;
  const int error = errno;
  close(socket);
  errno = error;
  return -1;
}

}  // namespace

DialLimit DialLimit::Within(double timeout_s, int cancelled) {
  return {SteadyClock::now() + std::chrono::duration_cast<SteadyClock::duration>(
                                   std::chrono::duration<double>(timeout_s)),
          cancelled};
}

bool AwaitSocket(int socket, short events, const DialLimit& limit) {
  std::array<pollfd, 2> waited{{{socket, events, 0}, {limit.cancelled, POLLIN, 0}}};
  int ready = -1;
  do {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(limit.ends - SteadyClock::now()).count();
    ready = poll(waited.data(), waited.size(),
                 static_cast<int>(std::clamp<std::int64_t>(left, 0, INT32_MAX)));
  } while (ready < 0 && errno == EINTR);
  return ready > 0 && waited[1].revents == 0;
}

absl::StatusOr<int> DialTcp(const std::string& address, const DialLimit& limit) {
  ESPALIER_ASSIGN_OR_RETURN(const HostPort where, ParseHostPort(address));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* raw = nullptr;
  const int error =
      getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), &hints, &raw);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("no tuner service answers at \"", address, "\" (", gai_strerror(error), ")"));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> found(raw, &freeaddrinfo);
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    const int socket = ConnectWithin(*one, limit);
    if (socket >= 0) return socket;
  }
  return absl::UnavailableError(
      absl::StrCat("no tuner service answers at \"", address, "\" (", std::strerror(errno), ")"));
}

}  // namespace espalier
