#include "tuner/server/http/http_connections.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/check.h"
#include "httplib.h"

namespace espalier {

namespace {

using Clock = std::chrono::steady_clock;

// One connection: what has come and is not read, what is answered and not sent yet.
class Connection final : public httplib::Stream {
 public:
  // `tls`: null where it speaks in the clear.
  Connection(int socket, SSL_CTX* tls, bool own_user)
      : socket_(socket), tls_context_(tls), own_user_(own_user), shaking_(tls != nullptr) {
    NamePeer();
    if (tls != nullptr) ::fcntl(socket_, F_SETFL, ::fcntl(socket_, F_GETFL) | O_NONBLOCK);
  }
  // What is still under way to us is taken first: closing would else take back the last answer.
  ~Connection() override {
    if (tls_ != nullptr && !shaking_) SSL_shutdown(tls_.get());
    ERR_clear_error();
    ::shutdown(socket_, SHUT_WR);
    std::array<char, 4096> rest;
    for (int i = 0; i < 64 && ::recv(socket_, rest.data(), rest.size(), MSG_DONTWAIT) > 0; ++i) {
    }
    ::close(socket_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool own_user() const { return own_user_; }
  // Has asked for something already.
  bool known() const { return known_ || own_user_; }

  // TLS begins with a handshake, which is led where all connections wait: each call goes as far as
  // what has come allows.
  enum class Handshake { kDone, kGoesOn, kFailed };
  Handshake ShakeHands() {
    if (!shaking_) return Handshake::kDone;
    if (tls_ == nullptr) {
      tls_.reset(SSL_new(tls_context_));
      if (tls_ == nullptr) return Handshake::kFailed;
      SSL_set_fd(tls_.get(), socket_);
    }
    const int done = SSL_accept(tls_.get());
    if (done == 1) {
      shaking_ = false;
      return Handshake::kGoesOn;  // the request has still to come
    }
    const int wanted = SSL_get_error(tls_.get(), done);
    ERR_clear_error();
    return wanted == SSL_ERROR_WANT_READ || wanted == SSL_ERROR_WANT_WRITE ? Handshake::kGoesOn
                                                                           : Handshake::kFailed;
  }

  // The head of a request is taken there as well, as far as it has come: a thread gets whole ones.
  enum class Head { kWhole, kGoesOn, kFailed };
  Head TakeHead() {
    in_.erase(0, at_);
    at_ = 0;
    while (!HasHead()) {
      const std::size_t before = in_.size();
      in_.resize(before + kBuffer);
      const ssize_t got = ReceiveAtOnce(in_.data() + before, kBuffer);
      in_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
      if (got == 0) return in_.empty() ? Head::kFailed : Head::kWhole;
      if (got < 0) return errno == EAGAIN || errno == EINTR ? Head::kGoesOn : Head::kFailed;
      if (!IsRequest()) return RefuseAtOnce();
    }
    return Head::kWhole;
  }

  void BeginRequest() {
    known_ = true;
    head_left_ = kMaxHttpHead;
    request_ends_ = Clock::now() + std::chrono::seconds(kHttpRequest_s);
  }
  // What comes now is the body.
  void EndHead() { head_left_ = SIZE_MAX; }
  // Takes no more of the request.
  void RefuseRest() { refused_ = true; }
  bool HasInput() const {
    return at_ < in_.size() || (tls_ != nullptr && SSL_pending(tls_.get()) > 0);
  }

  // Sends the answer. Whether the connection may be used for another request.
  bool FinishRequest() {
    const std::string_view answer = out_;
    const std::string_view head = answer.substr(0, answer.find("\r\n\r\n"));
    const bool goes_on =
        !long_ && !refused_ && head.find("\r\nConnection: close") == std::string_view::npos;
    long_ = false;
    return Flush() && goes_on;
  }

  bool is_readable() const override { return HasInput() || Await(POLLIN, 0); }
  bool is_writable() const override { return true; }

  ssize_t read(char* to, std::size_t size) override {
    if (at_ >= in_.size()) {
      // A client that waits for "100 Continue" says no more before it.
      if (refused_ || !Flush()) return -1;
      in_.resize(kBuffer);
      at_ = 0;
      const ssize_t got = Receive();
      in_.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
      if (got <= 0) return got;
    }
    const std::size_t n = std::min({size, in_.size() - at_, head_left_});
    if (n == 0) return -1;  // a head without an end
    if (head_left_ != SIZE_MAX) head_left_ -= n;
    std::copy_n(in_.data() + at_, n, to);
    at_ += n;
    return static_cast<ssize_t>(n);
  }

  ssize_t write(const char* from, std::size_t size) override {
    out_.append(from, size);
    // The head of an answer that does not fit the buffer is gone at the end: then it is the last
    // answer.
    if (out_.size() > kMaxBuffered) {
      long_ = true;
      if (!Flush()) return -1;
    }
    return static_cast<ssize_t>(size);
  }

  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip = peer_ip_;
    port = peer_port_;
  }
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }

 private:
  static constexpr std::size_t kBuffer = 16 << 10;
  static constexpr std::size_t kMaxBuffered = 64 << 20;

  // As a client's that begins TLS here, which is answered before it waits.
  bool IsRequest() const {
    const char first = in_.front();
    return std::isalpha(static_cast<unsigned char>(first)) != 0 || first == '\r' || first == '\n';
  }
  Head RefuseAtOnce() {
    constexpr std::string_view kNoRequest =
        "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    Send(kNoRequest.data(), kNoRequest.size());
    return Head::kFailed;
  }

  // Or as much as is too much of one, which the library refuses.
  bool HasHead() const {
    return in_.size() > kMaxHttpHead || in_.find("\r\n\r\n") != std::string::npos;
  }

  // As ::recv without waiting.
  ssize_t ReceiveAtOnce(char* to, std::size_t size) {
    if (tls_ == nullptr) return ::recv(socket_, to, size, MSG_DONTWAIT);
    const int got = SSL_read(tls_.get(), to, static_cast<int>(size));
    if (got > 0) return got;
    const int wanted = SSL_get_error(tls_.get(), got);
    ERR_clear_error();
    if (wanted == SSL_ERROR_ZERO_RETURN) return 0;
    errno = wanted == SSL_ERROR_WANT_READ || wanted == SSL_ERROR_WANT_WRITE ? EAGAIN : EPIPE;
    return -1;
  }

  void NamePeer() {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    if (::getpeername(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0) return;
    std::array<char, INET6_ADDRSTRLEN> text{};
    const void* ip = nullptr;
    if (address.ss_family == AF_INET) {
      const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
      ip = &v4.sin_addr;
      peer_port_ = ntohs(v4.sin_port);
    } else if (address.ss_family == AF_INET6) {
      const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
      ip = &v6.sin6_addr;
      peer_port_ = ntohs(v6.sin6_port);
    }
    if (ip != nullptr && ::inet_ntop(address.ss_family, ip, text.data(), text.size()) != nullptr) {
      peer_ip_ = text.data();
    }
  }

  bool Await(short events, int timeout_ms) const {
    pollfd waited{socket_, events, 0};
    int ready = -1;
    do {
      ready = ::poll(&waited, 1, timeout_ms);
    } while (ready < 0 && errno == EINTR);
    return ready > 0;
  }

  // A client that sends a byte now and then must not hold a thread for ever.
  bool AwaitRequest() const {
    using std::chrono::milliseconds;
    const auto left = std::chrono::duration_cast<milliseconds>(request_ends_ - Clock::now());
    if (left.count() <= 0) return false;
    return Await(POLLIN, static_cast<int>(std::min<std::int64_t>(
                             left.count(), std::int64_t{1000} * kHttpTimeout_s)));
  }

  // Something of the request; 0: the client has said all, -1: it says nothing in time.
  ssize_t Receive() {
    if (tls_ == nullptr) return AwaitRequest() ? ::recv(socket_, in_.data(), in_.size(), 0) : -1;
    while (true) {
      if (SSL_pending(tls_.get()) == 0 && !AwaitRequest()) return -1;
      const int got = SSL_read(tls_.get(), in_.data(), static_cast<int>(in_.size()));
      if (got > 0) return got;
      const int wanted = SSL_get_error(tls_.get(), got);
      ERR_clear_error();
      if (wanted == SSL_ERROR_ZERO_RETURN) return 0;
      if (wanted != SSL_ERROR_WANT_READ) return -1;
    }
  }

  // As ::send without waiting.
  ssize_t Send(const char* from, std::size_t size) {
    if (tls_ == nullptr) return ::send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    const int sent = SSL_write(tls_.get(), from, static_cast<int>(std::min(size, kTlsPiece)));
    if (sent > 0) return sent;
    const int wanted = SSL_get_error(tls_.get(), sent);
    ERR_clear_error();
    errno = wanted == SSL_ERROR_WANT_WRITE || wanted == SSL_ERROR_WANT_READ ? EAGAIN : EPIPE;
    return -1;
  }

  bool Flush() {
    std::size_t sent = 0;
    while (sent < out_.size()) {
      const ssize_t n =
          Await(POLLOUT, kHttpTimeout_s * 1000) ? Send(out_.data() + sent, out_.size() - sent) : -1;
      if (n > 0) {
        sent += static_cast<std::size_t>(n);
      } else if (n == 0 || (errno != EAGAIN && errno != EINTR) ||
                 !Await(POLLOUT, kHttpTimeout_s * 1000)) {
        return false;
      }
    }
    out_.clear();
    if (out_.capacity() > kBuffer) out_.shrink_to_fit();
    return true;
  }

  struct FreeTls {
    void operator()(SSL* tls) const { SSL_free(tls); }
  };
  static constexpr std::size_t kTlsPiece = 64 << 10;

  const int socket_;
  SSL_CTX* const tls_context_;
  const bool own_user_;
  std::unique_ptr<SSL, FreeTls> tls_;
  bool shaking_;
  bool known_ = false;
  std::size_t head_left_ = SIZE_MAX;  // bytes of the request's head that are still taken
  std::string peer_ip_;
  int peer_port_ = 0;
  std::string in_;
  std::size_t at_ = 0;  // of in_: what is read already
  std::string out_;
  bool long_ = false;
  bool refused_ = false;
  Clock::time_point request_ends_;
};

using ConnectionPtr = std::shared_ptr<Connection>;

// Connections between two requests. A thread of its own waits for all of them, and hands over those
// on which something comes.
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
    parked_.emplace(number, Parked{std::move(connection), ends});
    if (parked_.size() > kMaxHttpIdleConnections) Take(LeastMissed());
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
  }

 private:
  static constexpr std::uint64_t kWake = 0;
  // between looks for connections that have been idle too long
  static constexpr int kLook_ms = 1000;

  struct Parked {
    ConnectionPtr connection;
    Clock::time_point ends;
  };

  // The connection that has been silent for longest since it came, else the one that has been idle
  // for longest.
  std::map<std::uint64_t, Parked>::iterator LeastMissed() {
    const auto stranger = std::find_if(parked_.begin(), parked_.end(), [](const auto& parked) {
      return !parked.second.connection->known();
    });
    return stranger == parked_.end() ? parked_.begin() : stranger;
  }

  // Requires the lock. The connection is closed unless the caller keeps what is returned.
  ConnectionPtr Take(std::map<std::uint64_t, Parked>::iterator it) {
    ConnectionPtr connection = std::move(it->second.connection);
    ::epoll_ctl(epoll_, EPOLL_CTL_DEL, connection->socket(), nullptr);
    parked_.erase(it);
    return connection;
  }

  void Run() {
    std::array<epoll_event, 64> events;
    while (true) {
      const int ready =
          ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), kLook_ms);
      std::vector<ConnectionPtr> woken;
      {
        const std::lock_guard lock(mutex_);
        if (stopping_) return;
        for (int i = 0; i < ready; ++i) {
          const auto it = parked_.find(events[static_cast<std::size_t>(i)].data.u64);
          if (it == parked_.end()) continue;
          const Connection::Handshake led = it->second.connection->ShakeHands();
          if (led == Connection::Handshake::kGoesOn) continue;
          const Connection::Head head = led == Connection::Handshake::kDone
                                            ? it->second.connection->TakeHead()
                                            : Connection::Head::kFailed;
          if (head == Connection::Head::kGoesOn) continue;
          ConnectionPtr connection = Take(it);
          if (head == Connection::Head::kWhole) woken.push_back(std::move(connection));
        }
        for (auto it = parked_.begin(); it != parked_.end();) {
          const auto next = std::next(it);
          if (it->second.ends <= Clock::now()) Take(it);
          it = next;
        }
      }
      for (ConnectionPtr& connection : woken) serve_(std::move(connection));
    }
  }

  const std::function<void(ConnectionPtr)> serve_;
  const int epoll_;
  const int wake_;
  std::mutex mutex_;                        // guards what follows
  std::map<std::uint64_t, Parked> parked_;  // by age
  std::uint64_t next_ = kWake + 1;
  bool stopping_ = false;
  std::thread thread_;
};

class KeepAliveServer final : public httplib::Server {
 public:
  KeepAliveServer(SSL_CTX* tls, std::function<bool(const Peer&)> trusts)
      : tls_(tls), trusts_(std::move(trusts)) {
    set_keep_alive_timeout(kHttpIdle_s);
    set_keep_alive_max_count(kManyRequests);  // which is only told
    new_task_queue = [this] {
      // The library lets five wait to be accepted; the next ones would try again after a second.
      ::listen(svr_sock_, kBacklog);
      return new Threads(*this);
    };
  }

 private:
  // The library's own threads, which live as long as it listens, and the wait for connections.
  class Threads final : public httplib::TaskQueue {
   public:
    explicit Threads(KeepAliveServer& server)
        : pool_(kHttpThreads), idle_([this, &server](ConnectionPtr connection) {
            pool_.enqueue([this, &server, connection = std::move(connection)]() mutable {
              server.Serve(std::move(connection), idle_);
            });
          }) {
      server.idle_ = &idle_;
    }
    void enqueue(std::function<void()> task) override { pool_.enqueue(std::move(task)); }
    void shutdown() override {
      idle_.Stop();
      pool_.shutdown();
    }

   private:
    httplib::ThreadPool pool_;
    IdleConnections idle_;
  };

  // A new connection: it has the time of an idle one to begin.
  bool process_and_close_socket(socket_t socket) override {
    const bool own_user = trusts_ && trusts_(AskWhoConnected(socket));
    idle_->Park(std::make_shared<Connection>(socket, tls_.get(), own_user));
    return true;
  }

  // The library reads all of a body that is too large, and of one without a length what comes until
  // the connection ends: there is none.
  void CheckLength(httplib::Request& request, Connection& connection) const {
    const bool chunked = request.has_header("Transfer-Encoding");
    if (request.has_header("Content-Length")) {
      if (request.get_header_value<std::uint64_t>("Content-Length") >
          std::max<std::uint64_t>(kMaxSkippedBody, payload_max_length_)) {
        connection.RefuseRest();
      }
    } else if (!chunked) {
      request.headers.emplace("Content-Length", "0");
    }
  }

  // Bodies are JSON, but curl and urllib call them forms if nobody tells them otherwise. The
  // library would take only 8 KiB of a form, and read it as if it were the query of the URL.
  static void TakeNoForms(httplib::Request& request) {
    if (request.get_header_value("Content-Type").starts_with("application/x-www-form-urlencoded")) {
      request.headers.erase("Content-Type");
    }
  }

  void Serve(ConnectionPtr connection, IdleConnections& idle) {
    auto head = Connection::Head::kWhole;
    do {
      connection->BeginRequest();
      bool closed = false;
      const bool answered = process_request(*connection, false, closed,
                                            [this, &connection](httplib::Request& request) {
                                              connection->EndHead();
                                              request.headers.erase(kOwnUserHeader);
                                              if (connection->own_user())
                                                request.headers.emplace(kOwnUserHeader, "1");
                                              CheckLength(request, *connection);
                                              TakeNoForms(request);
                                            });
      if (!connection->FinishRequest() || !answered || closed) return;
      head = connection->TakeHead();
    } while (head == Connection::Head::kWhole);
    if (head == Connection::Head::kGoesOn) idle.Park(std::move(connection));
  }

  static constexpr int kBacklog = 512;
  static constexpr std::size_t kManyRequests = 1'000'000;
  static constexpr std::uint64_t kMaxSkippedBody = 8 << 20;  // of one that is refused

  struct FreeContext {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };

  const std::unique_ptr<SSL_CTX, FreeContext> tls_;
  const std::function<bool(const Peer&)> trusts_;
  IdleConnections* idle_ = nullptr;
};

}  // namespace

std::unique_ptr<httplib::Server> MakeHttpServer(SSL_CTX* tls,
                                                std::function<bool(const Peer&)> trusts) {
  return std::make_unique<KeepAliveServer>(tls, std::move(trusts));
}

std::unique_ptr<httplib::Server> MakeHttpServer(const TlsFiles& files,
                                                std::function<bool(const Peer&)> trusts) {
  if (!files.on()) return MakeHttpServer(nullptr, std::move(trusts));
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str());
  SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM);
  return MakeHttpServer(context, std::move(trusts));
}

}  // namespace espalier
