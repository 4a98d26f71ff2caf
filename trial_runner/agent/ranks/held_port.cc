#include "trial_runner/agent/ranks/held_port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/local_end.h"

namespace espalier {
namespace {

// Bound at all addresses, so that it is taken by nobody at any; 0: any port. Not open: errno says
// why.
FileDescriptor BoundAt(int port) {
  FileDescriptor bound(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (!bound.open() ||
      bind(bound.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return {};
  }
  // Only now: another one that is held so must not be taken for a free one.
  const int yes = 1;
  setsockopt(bound.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  return bound;
}

}  // namespace

absl::StatusOr<HeldPort> HeldPort::In(const PortRange& range) {
  // From different places, so that those that begin together seldom meet.
  const int tries = std::max(1, range.size());
  const int first = static_cast<int>(getpid()) % tries;
  for (int i = 0; i < tries; ++i) {
    const int port = range.any() ? 0 : range.low + (first + i) % tries;
    FileDescriptor bound = BoundAt(port);
    if (!bound.open()) continue;
    const int number = LocalEnd(bound.get()).port;
    return HeldPort(std::move(bound), number);
  }
  return absl::ResourceExhaustedError(
      range.any()
          ? absl::StrCat("no port is free for the trial's ranks to meet at: ", std::strerror(errno))
          : absl::StrCat("no port of the agent's ", range.text(),
                         " is free for the trial's ranks to meet at: give it more by "
                         "--port-range"));
}

}  // namespace espalier
