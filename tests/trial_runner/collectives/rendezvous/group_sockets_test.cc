#include "trial_runner/collectives/rendezvous/group_sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <string_view>

#include "base/file_descriptor.h"
#include "gtest/gtest.h"

namespace espalier {
namespace {

struct Listener {
  FileDescriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};

  Listener() {
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const at = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(socket.get(), at, size), 0);
    EXPECT_EQ(listen(socket.get(), 8), 0);
    EXPECT_EQ(getsockname(socket.get(), at, &size), 0);
  }

  std::string_view told() const {
    return {reinterpret_cast<const char*>(&address), sizeof(address)};
  }
  FileDescriptor Connect() const {
    FileDescriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto* const at = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(connect(client.get(), at, sizeof(address)), 0);
    return client;
  }
  FileDescriptor Accept() const { return FileDescriptor(accept(socket.get(), nullptr, nullptr)); }
};

// How many instructions decide what a socket is given; 0: it is given all.
socklen_t Filters(const FileDescriptor& socket) {
  socklen_t count = 0;
  EXPECT_EQ(getsockopt(socket.get(), SOL_SOCKET, SO_GET_FILTER, nullptr, &count), 0);
  return count;
}

TEST(GroupSockets, OnceAGroupStandsItsPortTakesNobodyElse) {
  const Listener groups;
  const Listener others;
  const FileDescriptor member = groups.Connect();
  const FileDescriptor accepted = groups.Accept();
  GroupSockets sockets;
  sockets.Note(groups.told());
  sockets.TurnNewcomersAway();
  EXPECT_EQ(Filters(groups.socket), 1u);
  EXPECT_EQ(Filters(others.socket), 0u);
  others.Connect();
  // What is connected stays so.
  EXPECT_EQ(send(member.get(), "x", 1, MSG_NOSIGNAL), 1);
  std::array<char, 1> heard{};
  EXPECT_EQ(recv(accepted.get(), heard.data(), heard.size(), 0), 1);
  sockets.ShutDown();
  EXPECT_EQ(recv(accepted.get(), heard.data(), heard.size(), 0), 0);
  EXPECT_EQ(Filters(groups.socket), 1u);
}

}  // namespace
}  // namespace espalier
