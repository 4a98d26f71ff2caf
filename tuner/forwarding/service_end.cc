#include "tuner/forwarding/service_end.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

namespace espalier {
namespace {

// A service whose machine is gone is noticed after a minute of silence and three questions.
constexpr int kSilence_s = 60;
constexpr int kQuestion_s = 10;
constexpr int kQuestions = 3;

void PrepareSocket(int socket) {
  const int yes = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &kSilence_s, sizeof(kSilence_s));
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &kQuestion_s, sizeof(kQuestion_s));
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &kQuestions, sizeof(kQuestions));
}

class PlainEnd final : public ServiceEnd {
 public:
  explicit PlainEnd(int socket) : socket_(socket) {}
  ~PlainEnd() override { close(socket_); }

  int socket() const override { return socket_; }
  ssize_t Read(char* to, std::size_t size) override { return Result(recv(socket_, to, size, 0)); }
  ssize_t Write(std::string_view bytes) override {
    return Result(send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }
  void EndWriting() override { shutdown(socket_, SHUT_WR); }

 private:
  static ssize_t Result(ssize_t done) {
    if (done >= 0) return done;
    return errno == EAGAIN || errno == EINTR ? kNotReady : kBroken;
  }

  const int socket_;
};

class TlsEnd final : public ServiceEnd {
 public:
  explicit TlsEnd(std::unique_ptr<TlsConnection> connection) : connection_(std::move(connection)) {}

  int socket() const override { return connection_->socket(); }
  ssize_t Read(char* to, std::size_t size) override {
    return Result(SSL_read(connection_->tls(), to, AsInt(size)));
  }
  ssize_t Write(std::string_view bytes) override {
    return Result(SSL_write(connection_->tls(), bytes.data(), AsInt(bytes.size())));
  }
  void EndWriting() override {
    SSL_shutdown(connection_->tls());
    ERR_clear_error();
    shutdown(socket(), SHUT_WR);
  }

 private:
  static int AsInt(std::size_t size) {
    return static_cast<int>(std::min<std::size_t>(size, std::numeric_limits<int>::max()));
  }

  ssize_t Result(int done) {
    if (done > 0) return done;
    const int why = SSL_get_error(connection_->tls(), done);
    ERR_clear_error();
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return kNotReady;
    return why == SSL_ERROR_ZERO_RETURN ? 0 : kBroken;
  }

  const std::unique_ptr<TlsConnection> connection_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ServiceEnd>> DialService(const std::string& address,
                                                        const TlsTrust& trust, bool http2,
                                                        const DialLimit& limit) {
  if (!trust.any()) {
    ESPALIER_ASSIGN_OR_RETURN(const int socket, DialTcp(address, limit));
    PrepareSocket(socket);
    return std::make_unique<PlainEnd>(socket);
  }
  ESPALIER_ASSIGN_OR_RETURN(std::unique_ptr<TlsConnection> connection,
                            DialTls(address, trust, http2, limit));
  PrepareSocket(connection->socket());
  return std::make_unique<TlsEnd>(std::move(connection));
}

}  // namespace espalier
