#include "tuner/server/http/http_connections.h"

#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/guarded.h"
#include "httplib.h"
#include "spdlog/spdlog.h"
#include "tuner/door/processor_share.h"
#include "tuner/server/http/http_connection.h"
#include "tuner/server/http/http_request_server.h"
#include "tuner/server/http/library_server.h"

namespace espalier {

namespace {

using Clock = std::chrono::steady_clock;

using ConnectionPtr = std::shared_ptr<HttpConnection>;

// What throws closes its connection, and no other. (What a request's own code throws is answered.)
template <typename Step>
void Try(Step step) {
  const absl::Status done = Guarded([] { return std::string("a connection"); }, step);
  if (done.ok()) return;
  spdlog::error("event=http_connection_failed error=\"{}\"", std::string(done.message()));
}

// A connection that is handed over.
class HandedConnection final : public StreamConnection {
 public:
  explicit HandedConnection(ConnectionPtr connection) : connection_(std::move(connection)) {}

  int socket() const override { return connection_->socket(); }
  std::optional<std::size_t> SendAtOnce(std::string_view text) override {
    const ssize_t sent = connection_->SendAtOnce(text);
    if (sent >= 0) return static_cast<std::size_t>(sent);
    if (errno == EAGAIN || errno == EINTR) return 0;
    return std::nullopt;
  }
  bool Hear() override { return connection_->Hear(); }

 private:
  const ConnectionPtr connection_;
};

// Connections between two requests. A thread of its own waits for all of them, and hands over those
// on which something comes. It also hears of clients that hang up while their answers are waited
// for.
class IdleConnections {
 public:
  explicit IdleConnections(std::function<void(ConnectionPtr)> serve)
      : serve_(std::move(serve)),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)),
        wake_(::eventfd(0, EFD_CLOEXEC)) {
    ESPALIER_CHECK(epoll_ >= 0 && wake_ >= 0, "a process has descriptors left when it starts");
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = kWake;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event);
    thread_ = std::thread([this] { Run(); });
  }
  ~IdleConnections() {
    Stop();
    ::close(wake_);
    ::close(epoll_);
  }

  void Park(ConnectionPtr connection) {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    const std::uint64_t number = next_++;
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP;
    event.data.u64 = number;
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, connection->socket(), &event) != 0) return;
    const auto ends =
        Clock::now() + std::chrono::seconds(connection->known() ? kHttpIdle_s : kHttpFirst_s);
    const auto it = parked_.emplace(number, Parked{std::move(connection), ends}).first;
    Count(it->second);
    CloseLeastMissed();
  }

  // Calls `hung_up` once the client has closed its side. The number is for Unwatch, which has to be
  // called before the connection is parked.
  std::uint64_t Watch(ConnectionPtr connection, std::function<void()> hung_up) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t number = next_++;
    epoll_event event{};
    event.events = EPOLLRDHUP;  // and no more: the next request may have come already
    event.data.u64 = number;
    if (stopping_ || ::epoll_ctl(epoll_, EPOLL_CTL_ADD, connection->socket(), &event) != 0) {
      return number;
    }
    watched_.emplace(number, Watched{std::move(connection), std::move(hung_up)});
    return number;
  }
  void Unwatch(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    TakeWatched(number);
  }

  // Closes them all.
  void Stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    const std::uint64_t one = 1;
    while (::write(wake_, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
    if (thread_.joinable()) thread_.join();
    const std::lock_guard lock(mutex_);
    parked_.clear();
    watched_.clear();
  }

 private:
  static constexpr std::uint64_t kWake = 0;
  // between looks for connections that have been idle too long
  static constexpr int kLook_ms = 1000;

  struct Parked {
    ConnectionPtr connection;
    Clock::time_point ends;
    std::size_t bytes = 0;  // as counted in bytes_
  };

  struct Watched {
    ConnectionPtr connection;
    std::function<void()> hung_up;
  };

  void Count(Parked& parked) {
    const std::size_t bytes = parked.connection->bytes();
    bytes_ += bytes - parked.bytes;
    parked.bytes = bytes;
  }

  void CloseLeastMissed() {
    while (parked_.size() > kMaxHttpIdleConnections || bytes_ > kMaxHttpHeads) Take(LeastMissed());
  }

  // The stranger that has been here for longest since its last request, else the client that has.
  std::map<std::uint64_t, Parked>::iterator LeastMissed() {
    const auto stranger = std::find_if(parked_.begin(), parked_.end(), [](const auto& parked) {
      return !parked.second.connection->proven();
    });
    return stranger == parked_.end() ? parked_.begin() : stranger;
  }

  // Requires the lock. The connection is closed unless the caller keeps what is returned.
  ConnectionPtr Take(std::map<std::uint64_t, Parked>::iterator it) {
    ConnectionPtr connection = std::move(it->second.connection);
    ::epoll_ctl(epoll_, EPOLL_CTL_DEL, connection->socket(), nullptr);
    bytes_ -= it->second.bytes;
    parked_.erase(it);
    return connection;
  }

  // Requires the lock. Null: it is watched no more.
  std::function<void()> TakeWatched(std::uint64_t number) {
    const auto found = watched_.extract(number);
    if (found.empty()) return nullptr;
    ::epoll_ctl(epoll_, EPOLL_CTL_DEL, found.mapped().connection->socket(), nullptr);
    return std::move(found.mapped().hung_up);
  }

  // Requires the lock. The connection, once the head of its request has come; null: it has not, or
  // the connection is closed.
  ConnectionPtr Hear(std::uint64_t number) {
    const auto it = parked_.find(number);
    if (it == parked_.end()) return nullptr;
    const HttpConnection::Handshake led = it->second.connection->ShakeHands();
    if (led == HttpConnection::Handshake::kGoesOn) return nullptr;
    const HttpConnection::Head head = led == HttpConnection::Handshake::kDone
                                          ? it->second.connection->TakeHead()
                                          : HttpConnection::Head::kFailed;
    if (head == HttpConnection::Head::kGoesOn) {
      Count(it->second);
      return nullptr;
    }
    ConnectionPtr connection = Take(it);
    return head == HttpConnection::Head::kWhole ? std::move(connection) : nullptr;
  }

  void Run() {
    std::array<epoll_event, 64> events;
    while (true) {
      const int ready =
          ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), kLook_ms);
      std::vector<ConnectionPtr> woken;
      std::vector<std::function<void()>> hung_up;
      {
        const std::lock_guard lock(mutex_);
        if (stopping_) return;
        for (int i = 0; i < ready; ++i) {
          const std::uint64_t number = events[static_cast<std::size_t>(i)].data.u64;
          if (ConnectionPtr connection = Hear(number)) woken.push_back(std::move(connection));
          if (auto told = TakeWatched(number)) hung_up.push_back(std::move(told));
        }
        CloseLeastMissed();
        for (auto it = parked_.begin(); it != parked_.end();) {
          const auto next = std::next(it);
          if (it->second.ends <= Clock::now()) Take(it);
          it = next;
        }
      }
      for (ConnectionPtr& connection : woken) Try([&] { serve_(std::move(connection)); });
      for (const auto& told : hung_up) Try(told);
    }
  }

  const std::function<void(ConnectionPtr)> serve_;
  const int epoll_;
  const int wake_;
  std::mutex mutex_;                        // guards what follows
  std::map<std::uint64_t, Parked> parked_;  // by age
  std::map<std::uint64_t, Watched> watched_;
  std::size_t bytes_ = 0;  // of all of them together
  std::uint64_t next_ = kWake + 1;
  bool stopping_ = false;
  std::thread thread_;
};

double Seconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// What guesses may take, of all strangers together. Any number of threads.
class Guesses {
 public:
  explicit Guesses(const HttpDoor& door) : share_(door.guesses, door.guesses_saved_s) {}

  static bool IsOne(const HttpHead& head) {
    return !head.authorization.empty() || !head.cookie.empty();
  }
  bool MayBeAnswered() {
    const std::lock_guard lock(mutex_);
    return share_.Wait_s(Seconds(CLOCK_MONOTONIC)) <= 0;
  }
  // Counts what `answer` takes of this thread.
  template <typename Answer>
  void Take(const Answer& answer) {
    const double begun_s = Seconds(CLOCK_THREAD_CPUTIME_ID);
    answer();
    const std::lock_guard lock(mutex_);
    share_.Spend(Seconds(CLOCK_THREAD_CPUTIME_ID) - begun_s);
  }

 private:
  std::mutex mutex_;
  ProcessorShare share_;
};

// Connections whose answers come later, which keep no thread. Any number of threads.
class OpenLaters {
 public:
  // False: none is taken any more.
  bool Begin() {
    const std::lock_guard lock(mutex_);
    if (!ending_) ++open_;
    return !ending_;
  }
  void End() {
    const std::lock_guard lock(mutex_);
    if (--open_ == 0) none_.notify_all();
  }
  // Takes no more, and waits for those that have begun.
  void Stop() {
    std::unique_lock lock(mutex_);
    ending_ = true;
    none_.wait(lock, [this] { return open_ == 0; });
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::condition_variable none_;
  std::size_t open_ = 0;
  bool ending_ = false;
};

class KeepAliveServer final : public HttpRequestServer {
 public:
  KeepAliveServer(TlsContextPtr tls, HttpDoor door)
      : tls_(std::move(tls)), door_(std::move(door)), guesses_(door_) {
    set_keep_alive_timeout(kHttpIdle_s);
    set_keep_alive_max_count(kManyRequests);  // which is only told
    new_task_queue = [this] {
      // The library lets five wait to be accepted; the next ones would try again after a second.
      ::listen(svr_sock_, kBacklog);
      return new Threads(*this);
    };
  }

 private:
  // The threads, which live as long as it listens, and the wait for connections. Strangers have a
  // few of their own, which never wait for one of them.
  class Threads final : public httplib::TaskQueue {
   public:
    explicit Threads(KeepAliveServer& server)
        : server_(server),
          clients_(kHttpThreads),
          waiting_(server.door_.waits ? kHttpWaitThreads : 0),
          strangers_(kHttpStrangerThreads),
          idle_([this](ConnectionPtr connection) { Serve(std::move(connection)); }) {
      server.threads_ = this;
    }

    // A request whose head has come. Whoever has one more after each would keep the threads.
    void Serve(ConnectionPtr connection) {
      if (stopping_) return;
      if (!connection->proven() && server_.Knows(connection->head())) connection->Prove();
      if (connection->proven()) {
        httplib::ThreadPool& threads = ThreadsFor(*connection);
        threads.enqueue([this, &threads, connection = std::move(connection)]() mutable {
          Try([&] { server_.Serve(std::move(connection), threads); });
        });
        return;
      }
      if (strangers_waiting_ >= kMaxHttpIdleConnections) return;
      const bool guess = Guesses::IsOne(connection->head());
      if (guess && !server_.guesses_.MayBeAnswered()) return;
      ++strangers_waiting_;
      strangers_.enqueue([this, guess, connection = std::move(connection)]() mutable {
        --strangers_waiting_;
        const auto serve = [&] { server_.ServeStranger(std::move(connection), strangers_); };
        Try([&] { guess ? server_.guesses_.Take(serve) : serve(); });
      });
    }
    void Park(ConnectionPtr connection) { idle_.Park(std::move(connection)); }
    void ServeLater(const std::string& name, ConnectionPtr connection) {
      if (!later_.Begin()) return;
      const std::uint64_t watched = idle_.Watch(connection, [this, name] {
        if (server_.door_.hung_up) server_.door_.hung_up(name);
      });
      const auto answered = [this, name, watched, connection = std::move(connection)]() mutable {
        idle_.Unwatch(watched);
        httplib::ThreadPool& own = connection->proven() ? clients_ : strangers_;
        own.enqueue([this, name, &own, connection = std::move(connection)]() mutable {
          Try([&] { server_.ServeLater(name, std::move(connection), own); });
        });
        later_.End();
      };
      server_.door_.later(name, answered);
    }
    // Of a client, for the request whose head has come.
    httplib::ThreadPool& ThreadsFor(const HttpConnection& connection) {
      if (!server_.door_.waits) return clients_;
      const HttpHead head = connection.head();
      return server_.door_.waits(head.method, head.target) ? waiting_ : clients_;
    }

    // A connection that has been accepted, which the thread that does so parks.
    QueueAnswer enqueue(std::function<void()> task) override {
      task();
      return static_cast<QueueAnswer>(true);
    }
    bool stopping() const { return stopping_; }
    void shutdown() override {
      stopping_ = true;
      idle_.Stop();
      later_.Stop();
      strangers_.shutdown();
      clients_.shutdown();
      waiting_.shutdown();
    }

   private:
    KeepAliveServer& server_;
    httplib::ThreadPool clients_;
    httplib::ThreadPool waiting_;
    httplib::ThreadPool strangers_;
    std::atomic<std::size_t> strangers_waiting_ = 0;
    std::atomic<bool> stopping_ = false;
    OpenLaters later_;
    IdleConnections idle_;
  };

  // A new connection: it has the time of an idle one to begin.
  bool process_and_close_socket(socket_t socket) override {
    const bool own_user = door_.trusts && door_.trusts(AskWhoConnected(socket));
    threads_->Park(std::make_shared<HttpConnection>(socket, tls_.get(), own_user));
    return true;
  }

  bool Knows(const HttpHead& head) const {
    if (!door_.knows) return false;
    if (door_.knows(std::string(head.authorization))) return true;
    const std::string token = SessionOf(head.cookie);
    return !token.empty() && door_.knows(kBearer + token);
  }
  std::string SessionOf(std::string_view cookies) const override {
    return cookies.empty() || !door_.session ? "" : door_.session(cookies);
  }

  // As ServeOne; a connection whose answer goes on, or comes later, is handed over.
  bool Answer(ConnectionPtr& connection) {
    NoAnswer none;
    if (ServeOne(*connection, none)) return true;
    if (!none.stream.empty() && door_.streams) {
      door_.streams(none.stream, std::make_unique<HandedConnection>(std::move(connection)));
    } else if (!none.later.empty() && door_.later) {
      threads_->ServeLater(none.later, std::move(connection));
    }
    return false;
  }

  // The answer of this name is there. What a client waits for is told also where the server stops.
  void ServeLater(const std::string& name, ConnectionPtr connection,
                  const httplib::ThreadPool& own) {
    if (HttpRequestServer::ServeLater(*connection, name)) GoOn(std::move(connection), own);
  }

  // On one of these threads, which is kept as long as what comes next is for them, too.
  void Serve(ConnectionPtr connection, const httplib::ThreadPool& own) {
    if (!threads_->stopping() && Answer(connection)) GoOn(std::move(connection), own);
  }
  // After every answer that is not the last of its connection. A stranger's next request goes the
  // way of its first: whatever it was answered, it may show a token by now, or guess.
  void GoOn(ConnectionPtr connection, const httplib::ThreadPool& own) {
    auto head = connection->TakeHead();
    while (head == HttpConnection::Head::kWhole) {
      if (!connection->proven() || &threads_->ThreadsFor(*connection) != &own) {
        threads_->Serve(std::move(connection));
        return;
      }
      if (threads_->stopping() || !Answer(connection)) return;
      head = connection->TakeHead();
    }
    if (head == HttpConnection::Head::kGoesOn) threads_->Park(std::move(connection));
  }

  // One request at a time, so that each is a stranger's only until it is known whose it is.
  void ServeStranger(ConnectionPtr connection, const httplib::ThreadPool& own) {
    const HttpHead head = connection->head();
    if (door_.opens && door_.opens(head.method, head.target)) {
      connection->Prove();
      threads_->Serve(std::move(connection));
      return;
    }
    if (Answer(connection)) GoOn(std::move(connection), own);
  }

  static constexpr int kBacklog = 512;
  static constexpr std::size_t kManyRequests = 1'000'000;

  const TlsContextPtr tls_;
  const HttpDoor door_;
  Guesses guesses_;
  Threads* threads_ = nullptr;
};

}  // namespace

std::unique_ptr<httplib::Server> MakeHttpServer(TlsContextPtr tls, HttpDoor door) {
  return std::make_unique<KeepAliveServer>(std::move(tls), std::move(door));
}

}  // namespace espalier
