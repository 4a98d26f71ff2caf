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

#include "base/protocol.h"
#include "trial_runner/control/control_plane_base.h"
#include "tuner/messages/wire/replica_wire.h"

namespace espalier {
namespace {

constexpr std::size_t kMaxMessageBytes = 16u << 20;

constexpr double kBeatsPerLease = 4;
constexpr std::chrono::seconds kTellEvery{1};

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
      : socket_(socket), options_(options) {
    v1::ReplicaMessage greeting;
    greeting.mutable_greeting()->set_protocol(ProtocolText());
    if (options.fork_obstacle)
      greeting.mutable_greeting()->set_fork_obstacle(*options.fork_obstacle);
    SendAll(Framed(greeting.SerializeAsString()));
    reader_ = std::thread([this] { ReadAll(); });
  }

  ~SocketControlPlane() override {
    {
      const std::lock_guard lock(send_mutex_);
      closing_ = true;
      shutdown(socket_, SHUT_RDWR);
    }
    reader_.join();
    close(socket_);
  }

  void Send(const ReplicaMessage& message) override {
    const std::string frame = Framed(ToProto(message).SerializeAsString());
    const std::lock_guard lock(send_mutex_);
    SendAll(frame);
  }

  std::optional<Adopted> Park(std::int64_t device_bytes) override {
    if (!options_.spares) return std::nullopt;
    {
      const std::lock_guard lock(send_mutex_);
      v1::ReplicaMessage parked;
      parked.mutable_parked()->set_device_memory_bytes(device_bytes);
      SendAll(Framed(parked.SerializeAsString()));
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
  // has not read what was sent, the agent has something to hear anyway. Whether it was sent.
  bool TrySend(const v1::ReplicaMessage& message) {
    const std::unique_lock lock(send_mutex_, std::try_to_lock);
    if (!lock.owns_lock() || closing_) return false;
    const std::string frame = Framed(message.SerializeAsString());
    const ssize_t sent = send(socket_, frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0) return false;
    SendAll(std::string_view(frame).substr(static_cast<std::size_t>(sent)));
    return true;
  }

  void Beat() {
    v1::ReplicaMessage heartbeat;
    heartbeat.mutable_heartbeat();
    TrySend(heartbeat);
  }

  void TellProgress() {
    const ReplicaForming now = progress().Read();
    if (now.phase == GroupPhase::kNone || now == told_) return;
    if (TrySend(ToProto(ReplicaMessage(now)))) told_ = now;
  }

  // Waits until there is something to receive. Keeps the lease meanwhile, and tells what moves.
  void AwaitReadable() {
    while (true) {
      const Clock::time_point now = Clock::now();
      if (options_.lease_s > 0 && now >= next_beat_) {
        Beat();
        next_beat_ = now + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double>(options_.lease_s / kBeatsPerLease));
      }
      if (now >= next_tell_) {
        TellProgress();
        next_tell_ = now + kTellEvery;
      }
      const Clock::time_point next =
          options_.lease_s > 0 ? std::min(next_beat_, next_tell_) : next_tell_;
      pollfd readable{socket_, POLLIN, 0};
      const auto wait = std::chrono::ceil<std::chrono::milliseconds>(next - now);
      if (poll(&readable, 1, static_cast<int>(wait.count())) > 0) return;
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
      v1::ReplicaCommand command;
      // It may be of a newer service.
      if (!command.ParseFromString(body) || !Obey(command)) {
        std::fprintf(
            stderr,
            "espalier: ignored a command of %zu bytes: not a ReplicaCommand with a Regroup "
            "or Adopt\n",
            body.size());
      }
    }
  }

  // False if it is of a kind that this build does not know.
  bool Obey(const v1::ReplicaCommand& command) {
    switch (command.kind_case()) {
      case v1::ReplicaCommand::kRegroup:
        Announce(FromProto(command.regroup()));
        return true;
      case v1::ReplicaCommand::kAdopt: {
        const std::lock_guard lock(adoption_mutex_);
        adoption_ = Adopted{FromProto(command.adopt()), LatestGeneration()};
        adopted_.notify_all();
        return true;
      }
      case v1::ReplicaCommand::kRanksMeet:  // is for what starts ranks of a launcher
      case v1::ReplicaCommand::KIND_NOT_SET:
        break;
    }
    return false;
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
  // The reader's alone; the first ones are due at once.
  Clock::time_point next_beat_;
  Clock::time_point next_tell_;
  ReplicaForming told_;
  std::mutex send_mutex_;
  bool closing_ = false;  // guarded by send_mutex_
  std::mutex adoption_mutex_;
  std::condition_variable adopted_;
  std::optional<Adopted> adoption_;  // guarded by adoption_mutex_
  std::thread reader_;               // last: it uses the others
};

}  // namespace

std::unique_ptr<ControlPlane> MakeSocketControlPlane(int socket,
                                                     const SocketControlOptions& options) {
  return std::make_unique<SocketControlPlane>(socket, options);
}

}  // namespace espalier
