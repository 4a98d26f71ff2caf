#include "tuner/forwarding/forwarder.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <list>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/guarded.h"
#include "base/local_end.h"
#include "tuner/credentials/socket_owner.h"
#include "tuner/forwarding/loopback_listener.h"
#include "tuner/forwarding/relay.h"

namespace espalier {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kNoDescriptors_ms = 100;  // until the next look whether some are free again
constexpr auto kSameReason = std::chrono::minutes(1);

// OpenSSL writes to sockets whose other end may be gone, which would end the process.
void BlockSigpipe() {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
}

void Count(int event) {
  const std::uint64_t one = 1;
  // An eventfd refuses only when its counter is full, and then it is readable anyway.
  [[maybe_unused]] const ssize_t written = write(event, &one, sizeof(one));
}

class ForwarderImpl final : public Forwarder {
 public:
  ForwarderImpl(int listener, ForwarderOptions options)
      : options_(std::move(options)),
        listener_(listener),
        address_(LocalEnd(listener).text()),
        stop_(eventfd(0, EFD_CLOEXEC)),
        ended_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    ESPALIER_CHECK(stop_ >= 0 && ended_ >= 0, "a process has descriptors left when it starts");
    acceptor_ = std::thread([this] { Accept(); });
  }

  ~ForwarderImpl() override {
    stopping_ = true;
    Count(stop_);  // which nobody reads, so that every thread sees it
    acceptor_.join();
    for (Connection& connection : connections_) connection.thread.join();
    close(listener_);
    close(stop_);
    close(ended_);
  }

  const std::string& address() const override { return address_; }
  int listener() const override { return listener_; }
  std::size_t connections() const override { return under_way_; }

 private:
  struct Connection {
    std::thread thread;
    std::atomic<bool> ended = false;
  };

  void Accept() {
    BlockSigpipe();
    bool descriptors = true;
    while (true) {
      const bool room = under_way_ < options_.limits.connections;
      std::array<pollfd, 3> waited{{{stop_, POLLIN, 0},
                                    {ended_, POLLIN, 0},
                                    {room && descriptors ? listener_ : -1, POLLIN, 0}}};
      poll(waited.data(), waited.size(), descriptors ? -1 : kNoDescriptors_ms);
      if (waited[0].revents != 0) return;
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t got = read(ended_, &count, sizeof(count));
      JoinEnded();
      descriptors = true;
      if (waited[2].revents != 0) descriptors = AcceptOne();
    }
  }

  // False: there are no descriptors for it.
  bool AcceptOne() {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client < 0) return errno != EMFILE && errno != ENFILE;
    const Peer peer = AskWhoConnected(client);
    if (peer.kind != PeerKind::kOwnUser) {
      close(client);
      Failed(absl::PermissionDeniedError(
          absl::StrCat("a connection to ", address_, " of ",
                       peer.user ? absl::StrCat("user ", *peer.user) : "nobody's",
                       " was closed: this port is for the programs of user ", geteuid())));
      return true;
    }
    const int yes = 1;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    Connection& connection = connections_.emplace_back();
    ++under_way_;
    try {
      connection.thread = std::thread([this, client, &connection] { Serve(client, connection); });
    } catch (const std::system_error& error) {  // no thread is left
      --under_way_;
      connections_.pop_back();
      close(client);
      Failed(absl::ResourceExhaustedError(
          absl::StrCat("a connection to ", address_, " was closed: ", error.what())));
    }
    return true;
  }

  void Serve(int client, Connection& connection) {
    BlockSigpipe();
    absl::Status done;
    done.Update(Guarded([this] { return "a connection to " + address_; },
                        [&] { done = RelayConnection(client, options_, stop_); }));
    if (!done.ok() && !stopping_) Failed(done);
    close(client);
    --under_way_;
    connection.ended = true;
    Count(ended_);
  }

  void JoinEnded() {
    for (auto connection = connections_.begin(); connection != connections_.end();) {
      const auto next = std::next(connection);
      if (connection->ended) {
        connection->thread.join();
        connections_.erase(connection);
      }
      connection = next;
    }
  }

  void Failed(const absl::Status& status) {
    if (!options_.failed) return;
    {
      const std::lock_guard lock(mutex_);
      const SteadyClock::time_point now = SteadyClock::now();
      if (status == last_failure_ && now < failed_ + kSameReason) return;
      last_failure_ = status;
      failed_ = now;
    }
    // It is told for people: nothing depends on it.
    Guarded([] { return std::string("a failure's word"); }, [&] { options_.failed(status); })
        .IgnoreError();
  }

  const ForwarderOptions options_;
  const int listener_;
  const std::string address_;
  const int stop_;
  const int ended_;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::size_t> under_way_ = 0;
  std::list<Connection> connections_;  // of the thread that accepts
  std::mutex mutex_;                   // guards what follows
  absl::Status last_failure_;
  SteadyClock::time_point failed_;
  std::thread acceptor_;
};

}  // namespace

std::unique_ptr<Forwarder> Forwarder::Start(int listener, ForwarderOptions options) {
  return std::make_unique<ForwarderImpl>(listener, std::move(options));
}

}  // namespace espalier
