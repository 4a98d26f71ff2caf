#include "trial_runner/control/socket_control_plane.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "trial_runner/control/control_wire.h"
#include "trial_runner/control/membership_box.h"

namespace espalier {
namespace {

constexpr std::size_t kMaxMessageBytes = 16u << 20;

using LengthPrefix = std::array<unsigned char, 4>;

class SocketControlPlane final : public ControlPlane {
 public:
  explicit SocketControlPlane(int socket) : socket_(socket), reader_([this] { ReadAll(); }) {}

  ~SocketControlPlane() override {
    {
      const std::lock_guard lock(send_mutex_);
      closing_ = true;
      shutdown(socket_, SHUT_RDWR);
    }
    reader_.join();
    close(socket_);
  }

  void Send(const ReplicaWord& word) override {
    const std::string body = EncodeReplicaWord(word);
    std::string message;
    for (std::size_t i = 0; i < LengthPrefix().size(); ++i) {
      message.push_back(static_cast<char>((body.size() >> (8 * i)) & 0xFF));
    }
    message += body;
    const std::lock_guard lock(send_mutex_);
    std::string_view left = message;
    while (!left.empty()) {
      const ssize_t sent = send(socket_, left.data(), left.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) AgentGone(std::strerror(errno));
      left.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  std::int64_t LatestGeneration() const override { return box_.Generation(); }
  Membership Latest() const override { return box_.Latest(); }
  Membership WaitAbove(std::int64_t generation) override { return box_.WaitAbove(generation); }
  std::optional<Membership> WaitAboveFor(std::int64_t generation, double patience_s) override {
    return box_.WaitAboveFor(generation, patience_s);
  }
  void Listen(std::function<void(const Membership&)> listener) override {
    box_.Listen(std::move(listener));
  }

 private:
  [[noreturn]] static void AgentGone(const char* why) {
    std::fprintf(stderr, "espalier: the agent is gone (%s): this replica ends\n", why);
    std::fflush(nullptr);
    _exit(kAgentGoneExitCode);
  }

  void ReadAll() {
    while (true) {
      LengthPrefix prefix{};
      if (!Receive(prefix.data(), prefix.size())) return;
      std::size_t size = 0;
      for (std::size_t i = 0; i < prefix.size(); ++i) {
        size |= static_cast<std::size_t>(prefix[i]) << (8 * i);
      }
      if (size > kMaxMessageBytes) AgentGone("message too long");
      std::string body(size, '\0');
      if (!Receive(body.data(), size)) return;
      absl::StatusOr<Membership> membership = DecodeMembership(body);
      if (membership.ok()) {
        box_.Put(*std::move(membership));
      } else {  // of a newer service, perhaps
        std::fprintf(stderr, "espalier: ignored a command: %s\n",
                     std::string(membership.status().message()).c_str());
      }
    }
  }

  // False when this object is being destroyed.
  bool Receive(void* start, std::size_t size) {
    auto* to = static_cast<char*>(start);
    while (size > 0) {
      const ssize_t got = recv(socket_, to, size, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        {
          const std::lock_guard lock(send_mutex_);
          if (closing_) return false;
        }
        AgentGone(got == 0 ? "socket closed" : std::strerror(errno));
      }
      to += got;
      size -= static_cast<std::size_t>(got);
    }
    return true;
  }

  const int socket_;
  MembershipBox box_;
  std::mutex send_mutex_;
  bool closing_ = false;  // guarded by send_mutex_
  std::thread reader_;    // last: it uses the others
};

}  // namespace

std::unique_ptr<ControlPlane> MakeSocketControlPlane(int socket) {
  return std::make_unique<SocketControlPlane>(socket);
}

}  // namespace espalier
