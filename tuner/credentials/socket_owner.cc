#include "tuner/credentials/socket_owner.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_format.h"

namespace espalier {
namespace {

constexpr int kAnswerWait_s = 2;
constexpr uid_t kNobody = 65534;  // the kernel's word for users that a namespace does not hold

// One end of a connection. A mapped IPv4 address counts as IPv4, as it does in the kernel's tables.
struct End {
  int family = AF_UNSPEC;
  std::array<std::uint32_t, 4> address{};  // network order
  std::uint16_t port = 0;                  // network order
};

struct Held {
  uid_t user = 0;
  bool held = false;  // by an open file, and connected
};

End ReadEnd(const sockaddr_storage& address) {
  End end;
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    end.family = AF_INET;
    end.address[0] = v4.sin_addr.s_addr;
    end.port = v4.sin_port;
  } else if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    end.port = v6.sin6_port;
    std::array<std::uint32_t, 4> words{};
    std::memcpy(words.data(), &v6.sin6_addr, sizeof(words));
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      end.family = AF_INET;
      end.address[0] = words[3];
    } else {
      end.family = AF_INET6;
      end.address = words;
    }
  }
  return end;
}

bool OnLoopback(const End& end) {
  if (end.family == AF_INET) return (ntohl(end.address[0]) >> 24) == 127;
  if (end.family != AF_INET6) return false;
  in6_addr address{};
  std::memcpy(&address, end.address.data(), sizeof(address));
  return IN6_IS_ADDR_LOOPBACK(&address);
}

std::string TextOf(const End& end) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (end.family == AF_UNSPEC) return "";
  const char* done = inet_ntop(end.family, end.address.data(), text.data(), text.size());
  return done == nullptr ? "" : done;
}

bool Connected(int state) {
  // A client that has said its last word (FIN_WAIT) may still hold its socket.
  return state == TCP_ESTABLISHED || state == TCP_FIN_WAIT1 || state == TCP_FIN_WAIT2 ||
         state == TCP_CLOSE_WAIT || state == TCP_CLOSING;
}

struct Question {
  nlmsghdr header{};
  inet_diag_req_v2 request{};
};

Question Ask(const End& client, const End& server) {
  Question question;
  question.header.nlmsg_len = sizeof(question);
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.request.sdiag_family = static_cast<std::uint8_t>(client.family);
  question.request.sdiag_protocol = IPPROTO_TCP;
  question.request.idiag_states = 0xffffffff;
  inet_diag_sockid& id = question.request.id;
  id.idiag_sport = client.port;
  id.idiag_dport = server.port;
  std::memcpy(id.idiag_src, client.address.data(), sizeof(id.idiag_src));
  std::memcpy(id.idiag_dst, server.address.data(), sizeof(id.idiag_dst));
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return question;
}

// nullopt: the kernel does not answer such questions here, or knows no such socket.
std::optional<Held> AskByNetlink(const End& client, const End& server) {
  const int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (netlink < 0) return std::nullopt;
  const absl::Cleanup close_netlink = [netlink] { close(netlink); };
  const timeval wait{kAnswerWait_s, 0};
  setsockopt(netlink, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
  const Question question = Ask(client, server);
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  if (sendto(netlink, &question, sizeof(question), 0, reinterpret_cast<const sockaddr*>(&kernel),
             sizeof(kernel)) != sizeof(question)) {
    return std::nullopt;
  }
  alignas(nlmsghdr) std::array<char, 8192> answer;
  const ssize_t size = recv(netlink, answer.data(), answer.size(), 0);
  if (size < static_cast<ssize_t>(sizeof(nlmsghdr))) return std::nullopt;
  nlmsghdr header;
  std::memcpy(&header, answer.data(), sizeof(header));
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
      size < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(inet_diag_msg)))) {
    return std::nullopt;
  }
  inet_diag_msg found;
  std::memcpy(&found, answer.data() + NLMSG_HDRLEN, sizeof(found));
  // Where there is no such connection the kernel may answer with one that listens.
  const bool same = found.id.idiag_sport == client.port && found.id.idiag_dport == server.port;
  return Held{found.idiag_uid, same && found.idiag_inode != 0 && Connected(found.idiag_state)};
}

// "0100007F:1F90", as /proc/net/tcp writes an end: words of the address as the machine has them.
std::string ProcText(const End& end) {
  std::string text;
  for (int i = 0; i < (end.family == AF_INET ? 1 : 4); ++i) {
    text += absl::StrFormat("%08X", end.address[static_cast<std::size_t>(i)]);
  }
  return text + absl::StrFormat(":%04X", ntohs(end.port));
}

// Whether each user of the machine has a number of its own here.
bool HoldsAllUsers(std::string_view uid_map) {
  std::istringstream words{std::string(uid_map)};
  std::uint64_t here = 0;
  std::uint64_t outside = 0;
  std::uint64_t count = 0;
  constexpr std::uint64_t kAll = 0xffffffff;
  return static_cast<bool>(words >> here >> outside >> count) && here == 0 && count >= kAll;
}

std::string UidMap() {
  std::ifstream file("/proc/self/uid_map");
  std::string line;
  std::getline(file, line);
  return line;
}

// Asks the kernel's own list, where there is no sock_diag (gVisor, some containers).
std::optional<Held> LookIntoProc(const End& client, const End& server) {
  std::ifstream list(client.family == AF_INET ? "/proc/net/tcp" : "/proc/net/tcp6");
  const std::string from = ProcText(client);
  const std::string to = ProcText(server);
  std::string line;
  while (std::getline(list, line)) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer, retransmits;
    uid_t user = 0;
    int timeout = 0;
    std::uint64_t inode = 0;
    if (!(words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user >>
          timeout >> inode)) {
      continue;
    }
    if (local != from || remote != to) continue;
    return Held{user, inode != 0 && Connected(std::stoi(state, nullptr, 16))};
  }
  return std::nullopt;
}

}  // namespace

bool IsOwnUser(uid_t owner, uid_t own, std::string_view uid_map) {
  return owner == own && (own != kNobody || HoldsAllUsers(uid_map));
}

Peer AskWhoConnected(int accepted_socket) {
  sockaddr_storage remote{};
  sockaddr_storage local{};
  socklen_t remote_size = sizeof(remote);
  socklen_t local_size = sizeof(local);
  Peer peer;
  if (getpeername(accepted_socket, reinterpret_cast<sockaddr*>(&remote), &remote_size) != 0 ||
      getsockname(accepted_socket, reinterpret_cast<sockaddr*>(&local), &local_size) != 0) {
    return peer;
  }
  const End client = ReadEnd(remote);
  const End server = ReadEnd(local);
  peer.address = TextOf(client);
  if (!OnLoopback(client)) return peer;
  peer.kind = PeerKind::kOtherUser;
  std::optional<Held> held = AskByNetlink(client, server);
  if (!held) held = LookIntoProc(client, server);
  if (!held || !held->held) return peer;
  peer.user = held->user;
  if (IsOwnUser(held->user, geteuid(), UidMap())) peer.kind = PeerKind::kOwnUser;
  return peer;
}

}  // namespace espalier
