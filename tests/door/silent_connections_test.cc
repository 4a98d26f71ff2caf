#include "tuner/door/silent_connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "gtest/gtest.h"

namespace espalier {
namespace {

int ConnectToLoopback(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<in_port_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return socket;
}

// Waits for the other end to close.
bool IsClosed(int socket) {
  char nothing = 0;
  return recv(socket, &nothing, 1, 0) == 0;
}

class SilentConnectionsTest : public testing::Test {
 protected:
  void Listen(bool trusted) {
    auto listening = SilentConnections::Listen(
        {"127.0.0.1", 0}, [trusted](const Peer&) { return trusted; },
        [this](int socket, bool known) {
          const std::lock_guard lock(mutex_);
          begun_.push_back(socket);
          known_ = known;
          changed_.notify_all();
          if (throws_) throw std::runtime_error("no memory");
        });
    ASSERT_TRUE(listening.ok()) << listening.status();
    listener_ = *std::move(listening);
  }
  void AwaitBegun(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_.size() >= count; });
  }
  void TearDown() override {
    listener_.reset();
    for (const int socket : begun_) close(socket);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> begun_;
  bool known_ = false;
  bool throws_ = false;
  std::unique_ptr<SilentConnections> listener_;
};

TEST_F(SilentConnectionsTest, ListensOnWhereWhoTakesAConnectionThrows) {
  throws_ = true;
  Listen(true);
  for (std::size_t i = 1; i <= 2; ++i) {
    const int client = ConnectToLoopback(listener_->address().port);
    ASSERT_EQ(send(client, "hello", 5, 0), 5);
    AwaitBegun(i);
    close(client);
  }
}

TEST_F(SilentConnectionsTest, HandsOverWhoSpeaksWithAllThatWasSaid) {
  Listen(true);
  const int silent = ConnectToLoopback(listener_->address().port);
  const int client = ConnectToLoopback(listener_->address().port);
  ASSERT_EQ(send(client, "hello", 5, 0), 5);
  AwaitBegun(1);
  EXPECT_TRUE(known_);
  char said[6] = {};
  EXPECT_EQ(recv(begun_[0], said, 5, MSG_WAITALL), 5);
  EXPECT_STREQ(said, "hello");
  {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(begun_.size(), 1u);
  }
  listener_.reset();
  EXPECT_TRUE(IsClosed(silent));
  close(silent);
  close(client);
}

TEST_F(SilentConnectionsTest, OfTooManyStrangersTheLongestWaitingGoes) {
  Listen(false);
  std::vector<int> silent;
  for (std::size_t i = 0; i <= kMaxSilentStrangers; ++i) {
    silent.push_back(ConnectToLoopback(listener_->address().port));
  }
  EXPECT_TRUE(IsClosed(silent.front()));
  // The others wait on, and who comes is served.
  const int client = ConnectToLoopback(listener_->address().port);
  ASSERT_EQ(send(client, "x", 1, 0), 1);
  AwaitBegun(1);
  EXPECT_FALSE(known_);
  for (const int socket : silent) close(socket);
  close(client);
}

TEST_F(SilentConnectionsTest, OwnUsersMayBeSilentInAnyNumber) {
  Listen(true);
  std::vector<int> silent;
  for (std::size_t i = 0; i < kMaxSilentStrangers + 50; ++i) {
    silent.push_back(ConnectToLoopback(listener_->address().port));
  }
  ASSERT_EQ(send(silent.front(), "x", 1, 0), 1);
  AwaitBegun(1);
  for (const int socket : silent) close(socket);
}

TEST_F(SilentConnectionsTest, NamesAPortInUse) {
  Listen(true);
  const auto taken = SilentConnections::Listen(
      listener_->address(), [](const Peer&) { return true; }, [](int, bool) {});
  EXPECT_NE(std::string(taken.status().message()).find(listener_->address().text()),
            std::string::npos);
}

}  // namespace
}  // namespace espalier
