#include "trial_runner/agent/ranks/rank_messages.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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

bool SendPacket(const FileDescriptor& socket, const msghdr& packet, std::size_t size) {
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket.get(), &packet, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(size);
}

// Whether a packet of that size has come.
bool ReadPacket(const FileDescriptor& socket, msghdr& into, std::size_t size, bool& gone) {
  ssize_t got = 0;
  do {
    got = recvmsg(socket.get(), &into, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  gone = got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
  return got == static_cast<ssize_t>(size);
}

// Room for one descriptor beside a packet.
struct Carried {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> bytes{};
};

msghdr Packet(iovec& part, Carried& carried) {
  msghdr packet{};
  packet.msg_iov = &part;
  packet.msg_iovlen = 1;
  packet.msg_control = carried.bytes.data();
  packet.msg_controllen = carried.bytes.size();
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

bool SendMessage(const FileDescriptor& socket, const RankMessage& message,
                 const FileDescriptor& process) {
  RankMessage said = message;
  iovec part{&said, sizeof said};
  Carried carried;
  msghdr packet = Packet(part, carried);
  if (process.open()) {
    cmsghdr* const header = CMSG_FIRSTHDR(&packet);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = process.get();
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  } else {
    packet.msg_controllen = 0;
  }
  return SendPacket(socket, packet, sizeof said);
}

bool SendOrder(const FileDescriptor& socket, RankOrder order) {
  iovec part{&order, sizeof order};
  msghdr packet{};
  packet.msg_iov = &part;
  packet.msg_iovlen = 1;
  return SendPacket(socket, packet, sizeof order);
}

std::optional<HeardMessage> ReadMessage(const FileDescriptor& socket, bool& gone) {
  HeardMessage heard;
  iovec part{&heard.said, sizeof heard.said};
  Carried carried;
  msghdr packet = Packet(part, carried);
  const bool whole = ReadPacket(socket, packet, sizeof heard.said, gone);
  if (packet.msg_controllen >= CMSG_LEN(sizeof(int))) {
    int fd = -1;
    const cmsghdr* const header = CMSG_FIRSTHDR(&packet);
    if (header->cmsg_type == SCM_RIGHTS) std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    heard.process = FileDescriptor(fd);
  }
  if (!whole) return std::nullopt;
  return heard;
}

std::optional<RankOrder> ReadOrder(const FileDescriptor& socket, bool& gone) {
  RankOrder order{};
  iovec part{&order, sizeof order};
  msghdr packet{};
  packet.msg_iov = &part;
  packet.msg_iovlen = 1;
  if (!ReadPacket(socket, packet, sizeof order, gone)) return std::nullopt;
  return order;
}

}  // namespace espalier
