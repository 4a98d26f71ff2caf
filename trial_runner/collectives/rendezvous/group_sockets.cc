#include "trial_runner/collectives/rendezvous/group_sockets.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/cleanup/cleanup.h"

namespace espalier {
namespace {

// The bytes of an address that tell it from others. Empty: not one of the internet.
std::string KeyOf(const sockaddr_storage& address) {
  const char* bytes = reinterpret_cast<const char*>(&address);
  switch (address.ss_family) {
    case AF_INET:
      return {bytes, offsetof(sockaddr_in, sin_zero)};
    case AF_INET6:
      return {bytes, offsetof(sockaddr_in6, sin6_scope_id)};
    default:
      return {};
  }
}

std::vector<int> OpenDescriptors() {
  std::vector<int> open;
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return open;
  const absl::Cleanup close_folder = [&] { closedir(folder); };
  while (const dirent* entry = readdir(folder)) {
    char* end = nullptr;
    const long fd = std::strtol(entry->d_name, &end, 10);
    if (end != entry->d_name && *end == '\0') open.push_back(static_cast<int>(fd));
  }
  return open;
}

}  // namespace

void GroupSockets::Note(std::string_view told) {
  const std::lock_guard lock(mutex_);
  told_.emplace_back(told);
}

bool GroupSockets::Touches(int socket) const {
  for (const auto name_of : {getpeername, getsockname}) {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    if (name_of(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return false;
    const std::string key = KeyOf(address);
    const std::lock_guard lock(mutex_);
    const bool noted = std::any_of(told_.begin(), told_.end(), [&](const std::string& told) {
      return told.find(key) != std::string::npos;
    });
    if (!key.empty() && noted) return true;
  }
  return false;
}

void GroupSockets::ShutDown() const {
  for (const int fd : OpenDescriptors()) {
    // A descriptor of our own for the same socket: the number may be somebody else's the next
    // moment.
    const int socket = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (socket < 0) continue;
    if (Touches(socket)) shutdown(socket, SHUT_RDWR);
    close(socket);
  }
}

}  // namespace espalier
