#pragma once

// Private to http_connections.cc: one connection of a client.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "httplib.h"
#include "tuner/server/http/http_connections.h"
#include "tuner/server/http/http_head.h"

namespace espalier {

// One connection: what has come and is not read, what is answered and not sent yet. Only for a
// client that is proven to be one does a thread wait: of a stranger it takes what has come, and
// sends what fits.
class HttpConnection final : public httplib::Stream {
 public:
  // `tls`: null where it speaks in the clear.
  HttpConnection(int socket, SSL_CTX* tls, bool own_user)
      : socket_(socket),
        tls_context_(tls),
        own_user_(own_user),
        shaking_(tls != nullptr),
        proven_(own_user) {
    NamePeer();
    if (tls != nullptr) ::fcntl(socket_, F_SETFL, ::fcntl(socket_, F_GETFL) | O_NONBLOCK);
  }
  // What is still under way to us is taken first: closing would else take back the last answer.
  ~HttpConnection() override {
    if (tls_ != nullptr && !shaking_) SSL_shutdown(tls_.get());
    ERR_clear_error();
    ::shutdown(socket_, SHUT_WR);
    std::array<char, 4096> rest;
    for (int i = 0; i < 64 && ::recv(socket_, rest.data(), rest.size(), MSG_DONTWAIT) > 0; ++i) {
    }
    ::close(socket_);
  }
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  bool own_user() const { return own_user_; }
  // Is the service's own user, or has shown a good token or a secret.
  bool proven() const { return proven_; }
  void Prove() { proven_ = true; }
  // Has asked for something already, or need not.
  bool known() const { return known_ || proven_; }
  // Of what has come and is not read.
  std::size_t bytes() const { return in_.capacity() + head_.capacity(); }

  // Of the request whose head has come.
  HttpHead head() const { return ReadHttpHead(std::string_view(in_).substr(at_)); }

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
    const std::size_t end = in_.find("\r\n\r\n");
    if (end != std::string::npos && !HasPlainHeaders(std::string_view(in_).substr(0, end))) {
      return RefuseAtOnce();
    }
    return Head::kWhole;
  }

  void BeginRequest() {
    known_ = true;
    left_ = kMaxHttpHead;
    request_ends_ = std::chrono::steady_clock::now() + std::chrono::seconds(kHttpRequest_s);
  }
  // What comes now is the body, of which so many bytes are taken, with all that divides it.
  void BeginBody(std::size_t most) { left_ = most; }
  // Takes no more of the request.
  void RefuseRest() { refused_ = true; }
  bool HasInput() const {
    return at_ < in_.size() || (tls_ != nullptr && SSL_pending(tls_.get()) > 0);
  }

  // Sends the answer. Whether the connection may be used for another request.
  bool FinishRequest() {
    const bool goes_on = !long_ && !refused_ &&
                         HeadOfAnswer().find("\r\nConnection: close") == std::string_view::npos;
    long_ = false;
    return Flush() && goes_on;
  }

  // The value of a header in the answer, which is not sent then; empty: the answer has none.
  std::string TakeNamed(const char* header) {
    const std::string line = std::string("\r\n") + header + ": ";
    const std::string_view head = HeadOfAnswer();
    const std::size_t at = head.find(line);
    if (at == std::string_view::npos) return "";
    const std::string_view rest = head.substr(at + line.size());
    std::string name(rest.substr(0, rest.find("\r\n")));
    out_.clear();
    return name;
  }

  // Keeps the head of the request that comes next, so that it can be read once more, after which it
  // is kept no longer.
  void KeepHead() {
    const std::size_t end = in_.find("\r\n\r\n", at_);
    head_ = end == std::string::npos ? "" : in_.substr(at_, end + 4 - at_);
  }
  void ReadHeadAgain() {
    in_.replace(0, at_, head_);
    at_ = 0;
    ForgetHead();
  }
  void ForgetHead() { std::string().swap(head_); }

  // Sends what fits; -1 with EAGAIN: nothing does. See StreamConnection for what comes next.
  ssize_t SendAtOnce(std::string_view text) { return Send(text.data(), text.size()); }
  // Throws away what comes. False: nothing comes any more.
  bool Hear() {
    std::array<char, 4096> heard;
    for (int i = 0; i < 16; ++i) {
      const ssize_t got = ReceiveAtOnce(heard.data(), heard.size());
      if (got == 0) return false;
      if (got < 0) return errno == EAGAIN || errno == EINTR;
    }
    return true;
  }

  bool is_readable() const override { return HasInput() || Await(POLLIN, 0); }
  bool is_writable() const override { return true; }

  ssize_t read(char* to, std::size_t size) override {
    if (at_ >= in_.size()) {
      // A client that waits for "100 Continue" says no more before it.
      if (refused_ || !proven_ || !Flush()) return -1;
      in_.resize(kBuffer);
      at_ = 0;
      const ssize_t got = Receive();
      in_.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
      if (got <= 0) return got;
    }
    const std::size_t n = std::min({size, in_.size() - at_, left_});
    if (n == 0) {  // without an end
      refused_ = true;
      return -1;
    }
    left_ -= n;
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

  // Of the answer, up to its last line; that the body may come is no answer yet.
  std::string_view HeadOfAnswer() const {
    std::string_view answer = out_;
    while (answer.starts_with("HTTP/1.1 1")) {
      answer.remove_prefix(std::min(answer.size(), answer.find("\r\n\r\n") + 4));
    }
    return answer.substr(0, answer.find("\r\n\r\n"));
  }

  // As a client's that begins TLS here, which is answered before it waits.
  bool IsRequest() const {
    const char first = in_.front();
    return std::isalpha(static_cast<unsigned char>(first)) != 0 || first == '\r' || first == '\n';
  }
  Head RefuseAtOnce() {
    constexpr std::string_view kWhy =
        "no request of HTTP: each header needs a line of its own, as in NAME: VALUE\r\n";
    const std::string answer =
        "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n"
        "Content-Length: " +
        std::to_string(kWhy.size()) + "\r\n\r\n" + std::string(kWhy);
    Send(answer.data(), answer.size());
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
    const auto left =
        std::chrono::duration_cast<milliseconds>(request_ends_ - std::chrono::steady_clock::now());
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
    const int wait_ms = proven_ ? kHttpTimeout_s * 1000 : 0;
    std::size_t sent = 0;
    while (sent < out_.size()) {
      const ssize_t n = Await(POLLOUT, wait_ms) ? Send(out_.data() + sent, out_.size() - sent) : -1;
      if (n > 0) {
        sent += static_cast<std::size_t>(n);
      } else if (n == 0 || (errno != EAGAIN && errno != EINTR) || !Await(POLLOUT, wait_ms)) {
        return false;
      }
    }
    out_.clear();
    if (out_.capacity() > kBuffer) out_.shrink_to_fit();
    return true;
  }

  static constexpr std::size_t kTlsPiece = 64 << 10;

  const int socket_;
  SSL_CTX* const tls_context_;
  const bool own_user_;
  TlsPtr tls_;
  bool shaking_;
  bool proven_;
  bool known_ = false;
  std::size_t left_ =
      SIZE_MAX;  // bytes of the request's head, then of its body, that are still taken
  std::string peer_ip_;
  int peer_port_ = 0;
  std::string head_;  // see KeepHead
  std::string in_;
  std::size_t at_ = 0;  // of in_: what is read already
  std::string out_;
  bool long_ = false;
  bool refused_ = false;
  std::chrono::steady_clock::time_point request_ends_;
};

}  // namespace espalier
