#include "trial_runner/agent/ranks/rank_messages.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "trial_runner/agent/processes/left_processes.h"

namespace espalier {
namespace {

static_assert(std::is_trivially_copyable_v<RankMessage>);

constexpr int kMostRanksWaiting = 4096;

// In the namespace without files: it ends with the socket.
socklen_t AbstractAddress(const std::string& address, sockaddr_un& filled) {
  filled.sun_family = AF_UNIX;
  const std::size_t length = std::min(address.size(), sizeof filled.sun_path - 1);
  std::memcpy(filled.sun_path + 1, address.data(), length);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

absl::Status CannotWatch(const char* what) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the trial's ranks cannot be watched: ", what, ": ", std::strerror(errno)));
}

bool SendPacket(const FileDescriptor& socket, const void* what, std::size_t size) {
  ssize_t sent = 0;
  do {
    sent = send(socket.get(), what, size, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(size);
}

template <typename Packet>
std::optional<Packet> ReadPacket(const FileDescriptor& socket, bool& gone) {
  Packet packet{};
  ssize_t got = 0;
  do {
    got = recv(socket.get(), &packet, sizeof packet, MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  gone = got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
  if (got != static_cast<ssize_t>(sizeof packet)) return std::nullopt;
  return packet;
}

}  // namespace

std::string NewRankAddress() { return "espalier-ranks-" + NewRunMark(); }

absl::StatusOr<FileDescriptor> ListenForRanks(const std::string& address) {
  FileDescriptor listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un filled{};
  const socklen_t length = AbstractAddress(address, filled);
  if (!listener.open()) return CannotWatch("socket");
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&filled), length) != 0) {
    return CannotWatch("bind");
  }
  if (listen(listener.get(), kMostRanksWaiting) != 0) return CannotWatch("listen");
  return listener;
}

FileDescriptor AcceptRank(const FileDescriptor& listener) {
  while (true) {
    FileDescriptor accepted(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!accepted.open()) return {};
    ucred peer{};
    socklen_t size = sizeof peer;
    if (getsockopt(accepted.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
        peer.uid == getuid()) {
      return accepted;
    }
  }
}

absl::StatusOr<FileDescriptor> ConnectToRanks(const std::string& address) {
  FileDescriptor connected(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un filled{};
  const socklen_t length = AbstractAddress(address, filled);
  if (!connected.open()) return CannotWatch("socket");
  if (connect(connected.get(), reinterpret_cast<const sockaddr*>(&filled), length) != 0) {
    return CannotWatch("connect");
  }
  return connected;
}

bool SendMessage(const FileDescriptor& socket, const RankMessage& message) {
  return SendPacket(socket, &message, sizeof message);
}

bool SendOrder(const FileDescriptor& socket, RankOrder order) {
  return SendPacket(socket, &order, sizeof order);
}

std::optional<RankMessage> ReadMessage(const FileDescriptor& socket, bool& gone) {
  return ReadPacket<RankMessage>(socket, gone);
}

std::optional<RankOrder> ReadOrder(const FileDescriptor& socket, bool& gone) {
  return ReadPacket<RankOrder>(socket, gone);
}

}  // namespace espalier
