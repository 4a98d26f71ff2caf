#include "tuner/door/silent_connections.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/guarded.h"
#include "base/local_end.h"

namespace espalier {

namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kWaiting = 4096;  // connections that the kernel keeps for us
constexpr int kRound_ms = 1000;
constexpr auto kNoDescriptors = std::chrono::milliseconds(20);
constexpr auto kTellAgain = std::chrono::minutes(1);

struct Silent {
  bool trusted = false;
  SteadyClock::time_point since;
};

// A listening socket, or -1 with errno.
int ListenAt(const addrinfo& at) {
  const int socket =
      ::socket(at.ai_family, at.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at.ai_protocol);
  if (socket < 0) return -1;
  const int yes = 1;
  const int no = 0;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  if (at.ai_family == AF_INET6) setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
  if (bind(socket, at.ai_addr, at.ai_addrlen) == 0 && listen(socket, kWaiting) == 0) return socket;
  const int error = errno;
  close(socket);
  errno = error;
  return -1;
}

class SilentConnectionsImpl final : public SilentConnections {
 public:
  SilentConnectionsImpl(Trusts trusts, Begun begun)
      : trusts_(std::move(trusts)),
        begun_(std::move(begun)),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        stop_(eventfd(0, EFD_CLOEXEC)) {
    ESPALIER_CHECK(epoll_ >= 0 && stop_ >= 0, "a process has descriptors left when it starts");
    Await(stop_, EPOLLIN);
  }

  ~SilentConnectionsImpl() override {
    const std::uint64_t one = 1;
    while (write(stop_, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
    if (thread_.joinable()) thread_.join();
    for (const auto& [socket, silent] : silent_) close(socket);
    for (const int listener : listeners_) close(listener);
    close(stop_);
    close(epoll_);
  }

  absl::Status Open(HostPort address) {
    // All addresses of a name such as localhost, with one port.
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    addrinfo* raw = nullptr;
    if (getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &raw) !=
        0) {
      raw = nullptr;
    }
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> found(raw, &freeaddrinfo);
    int error = 0;
    for (addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
      if (one->ai_family == AF_INET6) {
        reinterpret_cast<sockaddr_in6*>(one->ai_addr)->sin6_port =
            htons(static_cast<in_port_t>(address.port));
      } else if (one->ai_family == AF_INET) {
        reinterpret_cast<sockaddr_in*>(one->ai_addr)->sin_port =
            htons(static_cast<in_port_t>(address.port));
      }
      const int listener = ListenAt(*one);
      if (listener < 0) {
        error = errno;
        continue;
      }
      address.port = LocalEnd(listener).port;
      listeners_.push_back(listener);
      Await(listener, EPOLLIN);
    }
    if (listeners_.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot listen on ", address.text(), ": ", std::strerror(error)));
    }
    address_ = std::move(address);
    thread_ = std::thread([this] { Run(); });
    return absl::OkStatus();
  }

  const HostPort& address() const override { return address_; }

 private:
  void Await(int socket, std::uint32_t events) const {
    epoll_event event{};
    event.events = events;
    event.data.fd = socket;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event);
  }

  void Run() {
    std::array<epoll_event, 128> events;
    while (true) {
      const int ready =
          epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), kRound_ms);
      for (int i = 0; i < ready; ++i) {
        const epoll_event& event = events[static_cast<std::size_t>(i)];
        if (event.data.fd == stop_) return;
        const bool comes =
            std::find(listeners_.begin(), listeners_.end(), event.data.fd) != listeners_.end();
        const absl::Status taken =
            Guarded([] { return std::string("a connection"); },
                    [&] { comes ? Accept(event.data.fd) : Begin(event.data.fd); });
        if (!taken.ok()) {
          spdlog::error("event=connection_failed error=\"{}\"", std::string(taken.message()));
        }
      }
      CloseSilent();
    }
  }

  void Accept(int listener) {
    for (int i = 0; i < 64; ++i) {
      const int socket = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (socket < 0) {
        if (errno == EMFILE || errno == ENFILE) {
          TellNoDescriptors();
          CloseOldestStranger();
          std::this_thread::sleep_for(kNoDescriptors);
        }
        return;
      }
      const bool trusted = trusts_(AskWhoConnected(socket));
      silent_.emplace(socket, Silent{trusted, SteadyClock::now()});
      if (!trusted) {
        strangers_.push_back(socket);
        if (++stranger_count_ > kMaxSilentStrangers) CloseOldestStranger();
      }
      Await(socket, EPOLLIN);
    }
  }

  void Begin(int socket) {
    const auto found = silent_.find(socket);
    if (found == silent_.end()) return;
    const bool trusted = found->second.trusted;
    Forget(found);
    epoll_ctl(epoll_, EPOLL_CTL_DEL, socket, nullptr);
    char first = 0;
    const ssize_t peeked = recv(socket, &first, 1, MSG_PEEK | MSG_DONTWAIT);
    if (peeked <= 0) {
      close(socket);
    } else {
      begun_(socket, trusted);  // whose the socket is now, even if it throws
    }
  }

  void CloseSilent() {
    const auto ends = SteadyClock::now() - std::chrono::duration_cast<SteadyClock::duration>(
                                               std::chrono::duration<double>(kFirstByte_s));
    while (!strangers_.empty()) {
      const auto found = silent_.find(strangers_.front());
      if (found == silent_.end() || found->second.trusted) {
        strangers_.pop_front();
      } else if (found->second.since <= ends) {
        CloseOldestStranger();
      } else {
        return;
      }
    }
  }

  void TellNoDescriptors() {
    const auto now = SteadyClock::now();
    if (told_ && now - *told_ < kTellAgain) return;
    told_ = now;
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    spdlog::error(
        "event=no_descriptors limit={} text=\"no more connections are taken: want a higher limit "
        "of open files (ulimit -n, LimitNOFILE=)\"",
        limit.rlim_cur);
  }

  void CloseOldestStranger() {
    while (!strangers_.empty()) {
      const int socket = strangers_.front();
      strangers_.pop_front();
      const auto found = silent_.find(socket);
      if (found == silent_.end() || found->second.trusted) continue;
      Forget(found);
      close(socket);
      return;
    }
  }

  void Forget(std::map<int, Silent>::iterator found) {
    if (!found->second.trusted) {
      --stranger_count_;
      const auto place = std::find(strangers_.begin(), strangers_.end(), found->first);
      if (place != strangers_.end()) strangers_.erase(place);
    }
    silent_.erase(found);
  }

  const Trusts trusts_;
  const Begun begun_;
  const int epoll_;
  const int stop_;
  HostPort address_;
  std::vector<int> listeners_;
  // Used by the thread alone.
  std::map<int, Silent> silent_;  // by socket
  std::deque<int> strangers_;     // of them, by age
  std::size_t stranger_count_ = 0;
  std::optional<SteadyClock::time_point> told_;  // that there are no descriptors
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SilentConnections>> SilentConnections::Listen(HostPort address,
                                                                             Trusts trusts,
                                                                             Begun begun) {
  auto connections = std::make_unique<SilentConnectionsImpl>(std::move(trusts), std::move(begun));
  ESPALIER_RETURN_IF_ERROR(connections->Open(std::move(address)));
  return connections;
}

}  // namespace espalier
