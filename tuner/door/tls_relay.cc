#include "tuner/door/tls_relay.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"

namespace espalier {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kMovedAtOnce = 64 << 10;
constexpr std::uint64_t kRelayWakes = 0;

// Where both sides' bytes go through: what the other side takes at once is kept nowhere.
using Scratch = std::array<char, kMovedAtOnce>;

// Of a connection, at which something has happened.
struct Ends {
  bool outside = false;
  bool inside = false;
};

class Connection {
 public:
  explicit Connection(RelayedConnection of) : of_(std::move(of)) {
    // Its buffers would come and go with each record.
    SSL_clear_mode(of_.tls.get(), SSL_MODE_RELEASE_BUFFERS);
  }

  int outside() const { return of_.socket.get(); }
  int inside() const { return of_.inside.get(); }

  // Moves what can be moved at once, after something has happened at these ends. True: there is
  // more to come from outside, of which nothing tells.
  bool Move(Ends ready, Scratch& scratch) {
    if (ready.outside) WriteOutside();
    if (ready.inside) WriteInside();
    const bool more = (ready.outside || SSL_has_pending(of_.tls.get()) != 0) && MoveUp(scratch);
    if (ready.inside || inside_gone) MoveDown(scratch);
    return more && !over();
  }

  // Both have said all, or one is gone.
  bool over() const { return over_ || (up_.ended && down_.ended && down_.left.empty()); }

  std::uint32_t outside_events() const {
    return (!up_.ended && up_.left.empty() ? EPOLLIN : 0U) | (down_.left.empty() ? 0U : EPOLLOUT);
  }
  std::uint32_t inside_events() const {
    return (!down_.ended && down_.left.empty() ? EPOLLIN : 0U) | (up_.left.empty() ? 0U : EPOLLOUT);
  }
  // What epoll waits for already.
  std::uint32_t awaited_outside = 0;
  std::uint32_t awaited_inside = 0;
  bool inside_gone = false;

 private:
  struct Direction {
    std::string left;    // what its sink has not taken
    bool ended = false;  // its source has said all
  };

  // Whether more can be read at once.
  bool MoveUp(Scratch& scratch) {
    if (over_ || !up_.left.empty() || up_.ended) return false;
    std::size_t got = 0;
    // One read gives a record of 16 KiB at most.
    while (got < scratch.size()) {
      const int n =
          SSL_read(of_.tls.get(), scratch.data() + got, static_cast<int>(scratch.size() - got));
      if (n <= 0) {
        const int error = SSL_get_error(of_.tls.get(), n);
        ERR_clear_error();
        up_.ended = error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE;
        over_ = up_.ended && error != SSL_ERROR_ZERO_RETURN;
        break;
      }
      got += static_cast<std::size_t>(n);
      if (SSL_has_pending(of_.tls.get()) == 0 && n < kRecord) break;
    }
    const std::string_view came(scratch.data(), got);
    if (!of_.blocks.Pass(came)) {
      over_ = true;
      return false;
    }
    up_.left.assign(came.substr(SendInside(came)));
    WriteInside();
    return up_.left.empty() && got == scratch.size();
  }

  std::size_t SendInside(std::string_view bytes) {
    if (bytes.empty()) return 0;
    const ssize_t sent = send(inside(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      // The service has ended the connection: what it has said is still delivered.
      up_.ended = true;
      return bytes.size();
    }
    return static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
  }

  // What was left, and that there is no more.
  void WriteInside() {
    if (!up_.left.empty()) {
      up_.left.erase(0, SendInside(up_.left));
      if (!up_.left.empty()) return;
      up_.left = std::string();  // its memory too
    }
    if (up_.ended && !std::exchange(told_inside_, true)) shutdown(inside(), SHUT_WR);
  }

  void MoveDown(Scratch& scratch) {
    if (over_ || !down_.left.empty() || down_.ended) return;
    const ssize_t got = recv(inside(), scratch.data(), scratch.size(), MSG_DONTWAIT);
    if (got < 0) {
      over_ = errno != EAGAIN && errno != EINTR;
      return;
    }
    down_.ended = got == 0;
    const std::string_view came(scratch.data(), static_cast<std::size_t>(got));
    down_.left.assign(came.substr(SendOutside(came)));
    WriteOutside();
  }

  std::size_t SendOutside(std::string_view bytes) {
    std::size_t sent = 0;
    while (sent < bytes.size() && !over_) {
      const int n =
          SSL_write(of_.tls.get(), bytes.data() + sent, static_cast<int>(bytes.size() - sent));
      if (n <= 0) {
        const int error = SSL_get_error(of_.tls.get(), n);
        ERR_clear_error();
        over_ = error != SSL_ERROR_WANT_WRITE && error != SSL_ERROR_WANT_READ;
        break;
      }
      sent += static_cast<std::size_t>(n);
    }
    return sent;
  }

  void WriteOutside() {
    if (!down_.left.empty()) {
      down_.left.erase(0, SendOutside(down_.left));
      if (!down_.left.empty()) return;
      down_.left = std::string();
    }
    if (!down_.ended) return;
    SSL_shutdown(of_.tls.get());
    ERR_clear_error();
    shutdown(outside(), SHUT_WR);
    over_ = true;  // the service ends both ways at once, and would hear nothing
  }

  static constexpr int kRecord = 16 << 10;

  RelayedConnection of_;
  Direction up_;    // to the service
  Direction down_;  // to the client
  bool told_inside_ = false;
  bool over_ = false;
};

class TlsRelayImpl final : public TlsRelay {
 public:
  TlsRelayImpl()
      : epoll_(epoll_create1(EPOLL_CLOEXEC)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    ESPALIER_CHECK(epoll_.open() && wake_.open(), "a process has descriptors left when it starts");
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = kRelayWakes;
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event);
    thread_ = std::thread([this] { Run(); });
  }

  ~TlsRelayImpl() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    Wake();
    thread_.join();
  }

  void Add(RelayedConnection connection) override {
    {
      const std::lock_guard lock(mutex_);
      added_.push_back(std::move(connection));
    }
    Wake();
  }

 private:
  void Wake() const {
    const std::uint64_t one = 1;
    // An eventfd refuses only when its counter is full, and then it is readable anyway.
    [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
  }

  void Run() {
    BlockSigpipe();
    std::array<epoll_event, 128> events;
    while (!Ended()) {
      const int wait_ms = !again_.empty() ? 0 : ends_ ? kDrainLook_ms : -1;
      const int ready =
          epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), wait_ms);
      std::map<std::uint64_t, Ends> moved = std::exchange(again_, {});
      bool woken = false;
      for (int i = 0; i < ready; ++i) {
        const epoll_event& event = events[static_cast<std::size_t>(i)];
        const std::uint64_t number = event.data.u64;
        woken = woken || number == kRelayWakes;
        if (number == kRelayWakes) continue;
        Ends& ends = moved[number / 2];
        (number % 2 == 0 ? ends.outside : ends.inside) = true;
        if ((event.events & (EPOLLHUP | EPOLLERR)) != 0) HangUp(number);
      }
      if (woken) TakeAdded(moved);
      for (const auto& [number, ends] : moved) Move(number, ends);
    }
  }

  // Connections have two numbers in epoll, one for each end.
  void TakeAdded(std::map<std::uint64_t, Ends>& moved) {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(wake_.get(), &count, sizeof(count));
    std::vector<RelayedConnection> added;
    {
      const std::lock_guard lock(mutex_);
      added.swap(added_);
      if (stopping_ && !ends_) ends_ = SteadyClock::now() + kDrain;
    }
    for (RelayedConnection& one : added) {
      const std::uint64_t number = next_++;
      Connection& connection = connections_.try_emplace(number, std::move(one)).first->second;
      Await(EPOLL_CTL_ADD, connection.outside(), 2 * number, 0);
      Await(EPOLL_CTL_ADD, connection.inside(), 2 * number + 1, 0);
      moved[number] = {true, true};
    }
  }

  void Move(std::uint64_t number, Ends ready) {
    const auto found = connections_.find(number);
    if (found == connections_.end()) return;
    Connection& connection = found->second;
    if (connection.Move(ready, scratch_)) again_[number].outside = true;
    if (connection.over()) {
      connections_.erase(found);
      return;
    }
    if (connection.awaited_outside != connection.outside_events()) {
      connection.awaited_outside = connection.outside_events();
      Await(EPOLL_CTL_MOD, connection.outside(), 2 * number, connection.awaited_outside);
    }
    if (!connection.inside_gone && connection.awaited_inside != connection.inside_events()) {
      connection.awaited_inside = connection.inside_events();
      Await(EPOLL_CTL_MOD, connection.inside(), 2 * number + 1, connection.awaited_inside);
    }
  }

  // Epoll tells of it again and again, whatever is awaited. What the service has said before it
  // went is read when the client takes it.
  void HangUp(std::uint64_t number) {
    const auto found = connections_.find(number / 2);
    if (found == connections_.end()) return;
    Connection& connection = found->second;
    const bool inside = number % 2 == 1;
    Await(EPOLL_CTL_DEL, inside ? connection.inside() : connection.outside(), 0, 0);
    if (inside) {
      connection.inside_gone = true;
    } else {
      connections_.erase(found);
    }
  }

  void Await(int operation, int socket, std::uint64_t number, std::uint32_t events) const {
    epoll_event event{};
    event.events = events;
    event.data.u64 = number;
    epoll_ctl(epoll_.get(), operation, socket, &event);
  }

  bool Ended() const { return ends_ && (connections_.empty() || SteadyClock::now() >= *ends_); }

  static constexpr int kDrainLook_ms = 50;
  static constexpr auto kDrain = std::chrono::milliseconds(static_cast<int>(kRelayDrain_s * 1000));

  const FileDescriptor epoll_;
  const FileDescriptor wake_;
  std::mutex mutex_;                      // guards what follows
  std::vector<RelayedConnection> added_;  // since the thread last looked
  bool stopping_ = false;
  // The thread's alone.
  std::map<std::uint64_t, Connection> connections_;
  std::uint64_t next_ = kRelayWakes + 1;
  std::map<std::uint64_t, Ends> again_;  // those that have more to move
  std::optional<SteadyClock::time_point> ends_;
  Scratch scratch_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<TlsRelay> TlsRelay::Start() { return std::make_unique<TlsRelayImpl>(); }

}  // namespace espalier
