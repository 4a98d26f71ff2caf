#include "trial_runner/torch/group/contact_watch.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/trial_runner/collectives/forwarding_collectives.h"
#include "trial_runner/control/control_plane_base.h"

namespace espalier {
namespace {

constexpr std::chrono::seconds kStuckPatience{60};  // however busy the machine is

// A port at which connections are taken and nothing is ever said, or one at which nothing listens.
class QuietPort {
 public:
  explicit QuietPort(bool listens) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    EXPECT_EQ(bind(socket_, address, size), 0);
    if (listens) {
      EXPECT_EQ(listen(socket_, 16), 0);
    }
    EXPECT_EQ(getsockname(socket_, address, &size), 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(at.sin_port));
  }
  ~QuietPort() { close(socket_); }
  QuietPort(const QuietPort&) = delete;
  QuietPort& operator=(const QuietPort&) = delete;

  const std::string& address() const { return address_; }

 private:
  const int socket_;
  std::string address_;
};

// Its thread has been waiting for the others for long.
class WaitingForLong final : public ForwardingCollectives {
 public:
  WaitingForLong() : ForwardingCollectives(nullptr) {}
  double Waiting_s() const override {
    const std::chrono::duration<double> more = std::chrono::steady_clock::now() - begin_;
    return 2 * ContactWatch::kStuckAfter_s + more.count();
  }

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

class StuckPlane final : public ControlPlaneBase {
 public:
  void Send(const ReplicaMessage& message) override {
    const auto* stuck = std::get_if<ReplicaStuck>(&message);
    if (stuck != nullptr && !std::exchange(told_, true)) stuck_.set_value(*stuck);
  }
  std::optional<Adopted> Park(std::int64_t) override { return std::nullopt; }

  std::future<ReplicaStuck> stuck() { return stuck_.get_future(); }

 private:
  bool told_ = false;  // the watch's thread's
  std::promise<ReplicaStuck> stuck_;
};

TEST(ContactWatch, ASilentRank0KeepsItFromNothing) {
  const QuietPort silent(true);
  const QuietPort closed(false);
  StuckPlane plane;
  std::future<ReplicaStuck> told = plane.stuck();
  const WaitingForLong collectives;
  {
    ContactWatch watch(plane, collectives,
                       [](std::int64_t) { ADD_FAILURE() << "none is certain"; });
    watch.Follow({.generation = 7,
                  .members = {{ReplicaId(1), NodeId(1), silent.address()},
                              {ReplicaId(2), NodeId(2), "127.0.0.1:1"},
                              {ReplicaId(3), NodeId(3), closed.address()}},
                  .abandon = false,
                  .secret = "of generation 7"},
                 ReplicaId(2));
    watch.At({.kind = ProgramPlace::Kind::kStep, .epoch = 1, .step = 5});
    ASSERT_EQ(told.wait_for(kStuckPatience), std::future_status::ready);
    const ReplicaStuck stuck = told.get();
    EXPECT_EQ(stuck.generation, 7);
    ASSERT_EQ(stuck.contacts.size(), 2U);
    EXPECT_EQ(stuck.contacts[0].contact, Contact::kMute) << stuck.contacts[0].error;
    EXPECT_EQ(stuck.contacts[1].contact, Contact::kRefused) << stuck.contacts[1].error;
  }
}

}  // namespace
}  // namespace espalier
