#include "tuner/credentials/socket_owner.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "gtest/gtest.h"
#include "tests/base/machine_needs.h"

namespace espalier {
namespace {

constexpr uid_t kNobody = 65534;

// A listener on loopback: "127.0.0.1", "::1", or "::" which takes both kinds.
class LoopbackListener {
 public:
  explicit LoopbackListener(const std::string& host) {
    const bool v6 = host.find(':') != std::string::npos;
    socket_ = ::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int no = 0;
    if (v6) setsockopt(socket_, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
    sockaddr_in6 address6{};
    address6.sin6_family = AF_INET6;
    inet_pton(AF_INET6, host.c_str(), &address6.sin6_addr);
    sockaddr_in address4{};
    address4.sin_family = AF_INET;
    inet_pton(AF_INET, host.c_str(), &address4.sin_addr);
    const auto* address = v6 ? reinterpret_cast<const sockaddr*>(&address6)
                             : reinterpret_cast<const sockaddr*>(&address4);
    const socklen_t size = v6 ? sizeof(address6) : sizeof(address4);
    EXPECT_EQ(bind(socket_, address, size), 0) << std::strerror(errno);
    EXPECT_EQ(listen(socket_, 8), 0);
    sockaddr_storage bound{};
    socklen_t bound_size = sizeof(bound);
    getsockname(socket_, reinterpret_cast<sockaddr*>(&bound), &bound_size);
    port_ = v6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
               : reinterpret_cast<sockaddr_in&>(bound).sin_port;
  }
  ~LoopbackListener() { close(socket_); }

  int ConnectTo(const std::string& host) const {
    if (host.find(':') != std::string::npos) {
      const int socket = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_in6 address{};
      address.sin6_family = AF_INET6;
      address.sin6_port = port_;
      inet_pton(AF_INET6, host.c_str(), &address.sin6_addr);
      return connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 ? socket
                                                                                          : -1;
    }
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = port_;
    inet_pton(AF_INET, host.c_str(), &address.sin_addr);
    return connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 ? socket
                                                                                        : -1;
  }
  int Accept() const { return accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC); }

 private:
  int socket_ = -1;
  in_port_t port_ = 0;
};

PeerKind KindOf(const std::string& listening, const std::string& dialled) {
  const LoopbackListener listener(listening);
  const int client = listener.ConnectTo(dialled);
  EXPECT_GE(client, 0) << dialled;
  const int accepted = listener.Accept();
  const Peer peer = AskWhoConnected(accepted);
  if (peer.kind == PeerKind::kOwnUser) {
    EXPECT_EQ(peer.user, geteuid());
  }
  close(accepted);
  close(client);
  return peer.kind;
}

TEST(SocketOwner, KnowsItsOwnUserOnLoopback) {
  EXPECT_EQ(KindOf("127.0.0.1", "127.0.0.1"), PeerKind::kOwnUser);
  EXPECT_EQ(KindOf("127.0.0.2", "127.0.0.2"), PeerKind::kOwnUser);
}

TEST(SocketOwner, KnowsItsOwnUserOnLoopbackOfIpv6) {
  if (NotTestedHere(NoIpv6())) return;
  EXPECT_EQ(KindOf("::", "127.0.0.1"), PeerKind::kOwnUser);
  EXPECT_EQ(KindOf("::", "::ffff:127.0.0.1"), PeerKind::kOwnUser);
  EXPECT_EQ(KindOf("::", "::1"), PeerKind::kOwnUser);
  EXPECT_EQ(KindOf("::1", "::1"), PeerKind::kOwnUser);
}

TEST(SocketOwner, AClosedSocketIsNobodys) {
  const LoopbackListener listener("127.0.0.1");
  const int client = listener.ConnectTo("127.0.0.1");
  const int accepted = listener.Accept();
  ASSERT_EQ(send(client, "x", 1, MSG_NOSIGNAL), 1);
  close(client);  // the kernel says user 0 of what is left of it
  EXPECT_EQ(AskWhoConnected(accepted).kind, PeerKind::kOtherUser);
  close(accepted);
}

TEST(SocketOwner, AClientThatHasSaidItsLastWordIsStillItself) {
  const LoopbackListener listener("127.0.0.1");
  const int client = listener.ConnectTo("127.0.0.1");
  const int accepted = listener.Accept();
  shutdown(client, SHUT_WR);
  EXPECT_EQ(AskWhoConnected(accepted).kind, PeerKind::kOwnUser);
  close(client);
  close(accepted);
}

constexpr char kAllUsers[] = "         0          0 4294967295";

TEST(SocketOwner, RootIsAnOwnUserOfRootAlone) {
  EXPECT_TRUE(IsOwnUser(0, 0, kAllUsers));
  for (const uid_t own : {1u, 1000u, 10001u, kNobody}) {
    EXPECT_FALSE(IsOwnUser(0, own, kAllUsers)) << own;
    EXPECT_FALSE(IsOwnUser(own, 0, kAllUsers)) << own;
    EXPECT_TRUE(IsOwnUser(own, own, kAllUsers)) << own;
  }
}

// All users that a namespace does not hold look the same in it.
TEST(SocketOwner, NobodyInAUserNamespaceDoesNotKnowItsOwn) {
  for (const char* map : {"0 1000 1", "0 100000 65536", "0 0 65536", "1 1 4294967294", "", "x"}) {
    EXPECT_FALSE(IsOwnUser(kNobody, kNobody, map)) << map;
    EXPECT_TRUE(IsOwnUser(0, 0, map)) << map;
    EXPECT_TRUE(IsOwnUser(1000, 1000, map)) << map;
  }
}

// As from a container with the machine's network.
TEST(SocketOwner, RootIsAStrangerToAnotherUsersService) {
  if (NotTestedHere(NoOtherUser())) return;
  const LoopbackListener listener("127.0.0.1");
  const int client = listener.ConnectTo("127.0.0.1");  // root's
  const int accepted = listener.Accept();
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(kNobody - 1) != 0 || setuid(kNobody - 1) != 0) _exit(2);
    const Peer peer = AskWhoConnected(accepted);
    _exit(peer.kind == PeerKind::kOtherUser && peer.user == uid_t{0} ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  close(accepted);
  close(client);
}

TEST(SocketOwner, KnowsAnotherUser) {
  if (NotTestedHere(NoOtherUser()) || NotTestedHere(NoIpv6())) return;
  for (const std::string host : {"127.0.0.1", "::1", "::ffff:127.0.0.1"}) {
    const LoopbackListener listener("::");
    int told[2];
    ASSERT_EQ(pipe(told), 0);
    const pid_t child = fork();
    if (child == 0) {
      if (setgid(kNobody) != 0 || setuid(kNobody) != 0) _exit(2);
      const int client = listener.ConnectTo(host);
      close(told[1]);
      char end = 0;
      [[maybe_unused]] const ssize_t waited = read(told[0], &end, 1);
      _exit(client >= 0 ? 0 : 1);
    }
    const int accepted = listener.Accept();
    const Peer peer = AskWhoConnected(accepted);
    EXPECT_EQ(peer.kind, PeerKind::kOtherUser) << host;
    EXPECT_EQ(peer.user, kNobody) << host;
    [[maybe_unused]] const ssize_t wrote = write(told[1], "x", 1);
    close(told[0]);
    close(told[1]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    close(accepted);
  }
}

}  // namespace
}  // namespace espalier
