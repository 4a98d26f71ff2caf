#include "trial_runner/collectives/rendezvous/group_sockets.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "absl/cleanup/cleanup.h"
#include "base/file_descriptor.h"

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

// Each open socket, by a descriptor of our own: its number may be somebody else's the next moment.
void ForEachSocket(const std::function<void(int socket)>& visit) {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return;
  const absl::Cleanup close_folder = [&] { closedir(folder); };
  while (const dirent* entry = readdir(folder)) {
    char* end = nullptr;
    const int fd = static_cast<int>(std::strtol(entry->d_name, &end, 10));
    struct stat about {};
    if (end == entry->d_name || *end != '\0' || fstat(fd, &about) != 0 ||
        !S_ISSOCK(about.st_mode)) {
      continue;
    }
    const FileDescriptor socket(fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (socket.open()) visit(socket.get());
  }
}

}  // namespace

void GroupSockets::Note(std::string_view told) {
  const std::lock_guard lock(mutex_);
  told_.emplace_back(told);
}

bool GroupSockets::Noted(int socket, decltype(&getsockname) name_of) const {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (name_of(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return false;
  const std::string key = KeyOf(address);
  const std::lock_guard lock(mutex_);
  return !key.empty() && std::any_of(told_.begin(), told_.end(), [&](const std::string& told) {
    return told.find(key) != std::string::npos;
  });
}

void GroupSockets::ShutDown() const {
  ForEachSocket([this](int socket) {
    // One that is not connected, as a listener is, has no peer.
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    if (getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return;
    if (Noted(socket, getpeername) || Noted(socket, getsockname)) shutdown(socket, SHUT_RDWR);
  });
}

void GroupSockets::TurnNewcomersAway() const {
  ForEachSocket([this](int socket) {
    int listens = 0;
    socklen_t size = sizeof(listens);
    if (getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0 ||
        !Noted(socket, getsockname)) {
      return;
    }
    sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);  // of each packet
    const sock_fprog filter{1, &nothing};
    setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter));
  });
}

}  // namespace espalier
