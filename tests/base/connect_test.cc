#include "base/connect.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace espalier {
namespace {

class ConnectTest : public testing::Test {
 protected:
  ConnectTest() {
    to_.sin_family = AF_INET;
    to_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(server_, To(), sizeof to_), 0);
    socklen_t size = sizeof to_;
    EXPECT_EQ(getsockname(server_, To(), &size), 0);
  }
  ~ConnectTest() override {
    close(client_);
    close(server_);
  }

  sockaddr* To() { return reinterpret_cast<sockaddr*>(&to_); }
  bool Run(const std::function<bool(int)>& await) {
    return Connect(client_, To(), sizeof to_, await);
  }
  static bool AwaitWritable(int socket) {
    pollfd polled{socket, POLLOUT, 0};
    return poll(&polled, 1, /*timeout=*/60'000) == 1;
  }

  const int server_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int client_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in to_{};
};

TEST_F(ConnectTest, ConnectsASocketThatDoesNotBlock) {
  ASSERT_EQ(listen(server_, 1), 0);
  ASSERT_TRUE(Run(AwaitWritable)) << errno;
  EXPECT_EQ(send(client_, "x", 1, MSG_NOSIGNAL), 1);
}

TEST_F(ConnectTest, TellsThatNobodyListens) {
  EXPECT_FALSE(Run(AwaitWritable));
  EXPECT_EQ(errno, ECONNREFUSED);
}

TEST_F(ConnectTest, IsGivenUpByWhoeverWaits) {
  ASSERT_EQ(listen(server_, 1), 0);
  int waits = 0;
  EXPECT_FALSE(Run([&waits](int) {
    ++waits;
    errno = ECANCELED;
    return false;
  }));
  EXPECT_EQ(errno, ECANCELED);
  EXPECT_EQ(waits, 1);
}

}  // namespace
}  // namespace espalier
