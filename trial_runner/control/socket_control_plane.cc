#include "trial_runner/control/socket_control_plane.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>

#include "trial_runner/control/control_plane_base.h"
#include "trial_runner/control/control_wire.h"

namespace espalier {
namespace {

constexpr std::size_t kMaxMessageBytes = 16u << 20;

constexpr double kBeatsPerLease = 4;

using LengthPrefix = std::array<unsigned char, 4>;
using Clock = std::chrono::steady_clock;

std::string Framed(const std::string& body) {
  std::string message;
  for (std::size_t i = 0; i < LengthPrefix().size(); ++i) {
    message.push_back(static_cast<char>((body.size() >> (8 * i)) & 0xFF));
  }
  return message + body;
}

class SocketControlPlane final : public ControlPlaneBase {
 public:
  SocketControlPlane(int socket, const SocketControlOptions& options)
      : socket_(socket), options_(options), reader_([this] { ReadAll(); }) {}

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
    const std::string message = Framed(EncodeReplicaWord(word));
    const std::lock_guard lock(send_mutex_);
    SendAll(message);
  }

  std::optional<Adoption> Park() override {
    if (!options_.spares) return std::nullopt;
    {
      const std::lock_guard lock(send_mutex_);
      SendAll(Framed(EncodeParked()));
    }
    std::unique_lock lock(adoption_mutex_);
    adopted_.wait(lock, [this] { return adoption_.has_value(); });
    return std::exchange(adoption_, std::nullopt);
  }

 private:
  // Under send_mutex_.
  void SendAll(std::string_view left) {
    while (!left.empty()) {
      const ssize_t sent = send(socket_, left.data(), left.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) AgentGone(std::strerror(errno));
      left.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  // Never waits: this thread's commands must not. Where another thread is sending, or the agent
  // has not read what was sent, the agent has something to hear anyway.
  void Beat() {
    const std::unique_lock lock(send_mutex_, std::try_to_lock);
    if (!lock.owns_lock() || closing_) return;
    const std::string beat = Framed(EncodeHeartbeat());
    const ssize_t sent = send(socket_, beat.data(), beat.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) SendAll(std::string_view(beat).substr(static_cast<std::size_t>(sent)));
  }

  // Waits until there is something to receive, and keeps the lease meanwhile.
  void AwaitReadable() {
    if (options_.lease_s <= 0) return;  // recv waits
    while (true) {
      const Clock::time_point now = Clock::now();
      if (now >= next_beat_) {
        Beat();
        next_beat_ = now + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double>(options_.lease_s / kBeatsPerLease));
      }
      pollfd readable{socket_, POLLIN, 0};
      const auto wait = std::chrono::ceil<std::chrono::milliseconds>(next_beat_ - now);
      if (poll(&readable, 1, static_cast<int>(std::min<std::int64_t>(wait.count(), 60'000))) > 0) {
        return;
      }
    }
  }

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
      absl::StatusOr<ReplicaOrder> order = DecodeOrder(body);
      if (!order.ok()) {  // of a newer service, perhaps
        std::fprintf(stderr, "espalier: ignored a command: %s\n",
                     std::string(order.status().message()).c_str());
      } else if (auto* adoption = std::get_if<Adoption>(&*order)) {
        adoption->generation = LatestGeneration();
        const std::lock_guard lock(adoption_mutex_);
        adoption_ = *std::move(adoption);
        adopted_.notify_all();
      } else {
        Announce(std::get<Membership>(*std::move(order)));
      }
    }
  }

  // False when this object is being destroyed.
  bool Receive(void* start, std::size_t size) {
    auto* to = static_cast<char*>(start);
    while (size > 0) {
      AwaitReadable();
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
  const SocketControlOptions options_;
  Clock::time_point next_beat_;  // the reader's alone; the first one is due at once
  std::mutex send_mutex_;
  bool closing_ = false;  // guarded by send_mutex_
  std::mutex adoption_mutex_;
  std::condition_variable adopted_;
  std::optional<Adoption> adoption_;  // guarded by adoption_mutex_
  std::thread reader_;                // last: it uses the others
};

}  // namespace

std::unique_ptr<ControlPlane> MakeSocketControlPlane(int socket,
                                                     const SocketControlOptions& options) {
  return std::make_unique<SocketControlPlane>(socket, options);
}

}  // namespace espalier
