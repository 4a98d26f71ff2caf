#include "tests/forwarding/test_service.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/host_port.h"
#include "base/local_end.h"
#include "gtest/gtest.h"
#include "tuner/credentials/openssl_free.h"
#include "tuner/forwarding/loopback_listener.h"

namespace espalier {
namespace {

SSL_CTX* ContextOf(const Certificate& certificate) {
  using Text = std::unique_ptr<BIO, OpenSslFree<BIO_free_all>>;
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  const Text pem(BIO_new_mem_buf(certificate.pem.data(), static_cast<int>(certificate.pem.size())));
  const Text key(
      BIO_new_mem_buf(certificate.key_pem.data(), static_cast<int>(certificate.key_pem.size())));
  X509* shown = PEM_read_bio_X509(pem.get(), nullptr, nullptr, nullptr);
  EVP_PKEY* secret = PEM_read_bio_PrivateKey(key.get(), nullptr, nullptr, nullptr);
  EXPECT_EQ(SSL_CTX_use_certificate(context, shown), 1);
  EXPECT_EQ(SSL_CTX_use_PrivateKey(context, secret), 1);
  X509_free(shown);
  EVP_PKEY_free(secret);
  return context;
}

}  // namespace

TestService::TestService(const Certificate* certificate) : stop_(eventfd(0, EFD_CLOEXEC)) {
  if (certificate != nullptr) tls_ = ContextOf(*certificate);
  listener_ = *ListenOnLoopback("127.0.0.1:0");
  address_ = LocalEnd(listener_).text();
  acceptor_ = std::thread([this] { Accept(); });
}

TestService::~TestService() {
  const std::uint64_t one = 1;
  EXPECT_EQ(write(stop_, &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
  acceptor_.join();
  for (std::thread& thread : threads_) thread.join();
  close(listener_);
  close(stop_);
  SSL_CTX_free(tls_);
}

std::string TestService::begun_with() const {
  const std::lock_guard lock(mutex_);
  return begun_with_;
}

void TestService::Accept() {
  while (true) {
    std::array<pollfd, 2> waited{{{stop_, POLLIN, 0}, {listener_, POLLIN, 0}}};
    poll(waited.data(), waited.size(), -1);
    if (waited[0].revents != 0) return;
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    ++seen_;
    most_ = std::max<int>(most_, ++now_);
    threads_.emplace_back([this, client] {
      sigset_t pipe;
      sigemptyset(&pipe);
      sigaddset(&pipe, SIGPIPE);
      pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
      Echo(client);
      --now_;
      close(client);
    });
  }
}

void TestService::Echo(int client) {
  const std::unique_ptr<SSL, OpenSslFree<SSL_free>> tls(tls_ == nullptr ? nullptr : SSL_new(tls_));
  // Not to be held by who says nothing when the service ends.
  const auto await = [&] {
    std::array<pollfd, 2> waited{{{stop_, POLLIN, 0}, {client, POLLIN, 0}}};
    poll(waited.data(), waited.size(), -1);
    return waited[0].revents == 0;
  };
  if (tls != nullptr) {
    SSL_set_fd(tls.get(), client);
    if (!await() || SSL_accept(tls.get()) != 1) return;
  }
  bool first = true;
  std::array<char, 8192> piece;
  while ((tls != nullptr && SSL_pending(tls.get()) > 0) || await()) {
    const ssize_t got = tls == nullptr
                            ? recv(client, piece.data(), piece.size(), 0)
                            : SSL_read(tls.get(), piece.data(), static_cast<int>(piece.size()));
    if (got <= 0) break;
    if (std::exchange(first, false)) {
      const std::lock_guard lock(mutex_);
      begun_with_.assign(piece.data(), static_cast<std::size_t>(got));
    }
    if (tls != nullptr) {
      if (SSL_write(tls.get(), piece.data(), static_cast<int>(got)) <= 0) break;
    } else if (!SendAll(client, {piece.data(), static_cast<std::size_t>(got)})) {
      break;
    }
  }
  if (tls != nullptr) SSL_shutdown(tls.get());
  ERR_clear_error();
}

int ConnectToLoopback(const std::string& address) {
  const HostPort where = *ParseHostPort(address);
  sockaddr_storage end{};
  socklen_t size = sizeof(sockaddr_in);
  auto& v4 = reinterpret_cast<sockaddr_in&>(end);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(end);
  if (inet_pton(AF_INET, where.host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(static_cast<in_port_t>(where.port));
  } else {
    inet_pton(AF_INET6, where.host.c_str(), &v6.sin6_addr);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(static_cast<in_port_t>(where.port));
    size = sizeof(v6);
  }
  const int client = socket(end.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(client, reinterpret_cast<sockaddr*>(&end), size) == 0) return client;
  close(client);
  return -1;
}

bool SendAll(int socket, const std::string& bytes) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t done = send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (done <= 0) return false;
    sent += static_cast<std::size_t>(done);
  }
  return true;
}

std::string ReceiveAll(int socket, std::size_t most) {
  std::string all;
  std::array<char, 8192> piece;
  while (all.size() < most) {
    const ssize_t got = recv(socket, piece.data(), std::min(piece.size(), most - all.size()), 0);
    if (got <= 0) break;
    all.append(piece.data(), static_cast<std::size_t>(got));
  }
  return all;
}

}  // namespace espalier
