#include "tuner/credentials/pinned_certificate.h"

#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/private_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "tuner/credentials/certificate.h"
#include "tuner/credentials/openssl_free.h"

namespace espalier {
namespace {

using testing::HasSubstr;
using testing::Not;

// Anything that speaks TLS with a certificate of the test's.
class TlsServer {
 public:
  explicit TlsServer(const Certificate& certificate) {
    const std::string folder = testing::TempDir() + "/espalier_tls_server";
    EXPECT_TRUE(MakePrivateFolders(folder).ok());
    EXPECT_TRUE(WritePrivateFile(folder + "/cert", certificate.pem).ok());
    EXPECT_TRUE(WritePrivateFile(folder + "/key", certificate.key_pem).ok());
    server_ =
        std::make_unique<httplib::SSLServer>((folder + "/cert").c_str(), (folder + "/key").c_str());
    address_ = "127.0.0.1:" + std::to_string(server_->bind_to_any_port("127.0.0.1"));
    thread_ = std::thread([this] { server_->listen_after_bind(); });
    while (!server_->is_running()) std::this_thread::yield();
  }
  ~TlsServer() {
    server_->stop();
    thread_.join();
  }
  const std::string& address() const { return address_; }

 private:
  std::unique_ptr<httplib::SSLServer> server_;
  std::string address_;
  std::thread thread_;
};

TEST(PinService, TrustsTheCertificateOfTheTokenAndNoOther) {
  const Certificate certificate = *MakeCertificate(kServiceCertificateName);
  const TlsServer server(certificate);
  const auto pinned = PinService(server.address(), *CertificateHash(certificate.pem));
  ASSERT_TRUE(pinned.ok()) << pinned.status();
  EXPECT_EQ(*CertificateHash(pinned->certificate), *CertificateHash(certificate.pem));
  EXPECT_EQ(pinned->name, kServiceCertificateName);

  const auto other = PinService(server.address(), std::string(64, '0'));
  EXPECT_TRUE(absl::IsFailedPrecondition(other.status()));
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("another pool"));
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("tuner token create"));
}

// Makes a certificate of the same service that is good between other moments.
Certificate MadeGood(const Certificate& certificate, std::int64_t from_s, std::int64_t to_s) {
  using Text = std::unique_ptr<BIO, OpenSslFree<BIO_free_all>>;
  const auto read = [](const std::string& pem) {
    return Text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  };
  const std::unique_ptr<X509, OpenSslFree<X509_free>> shown(
      PEM_read_bio_X509(read(certificate.pem).get(), nullptr, nullptr, nullptr));
  const std::unique_ptr<EVP_PKEY, OpenSslFree<EVP_PKEY_free>> key(
      PEM_read_bio_PrivateKey(read(certificate.key_pem).get(), nullptr, nullptr, nullptr));
  X509_gmtime_adj(X509_getm_notBefore(shown.get()), from_s);
  X509_gmtime_adj(X509_getm_notAfter(shown.get()), to_s);
  EXPECT_GT(X509_sign(shown.get(), key.get(), EVP_sha256()), 0);
  const Text pem(BIO_new(BIO_s_mem()));
  EXPECT_EQ(PEM_write_bio_X509(pem.get(), shown.get()), 1);
  char* text = nullptr;
  const long size = BIO_get_mem_data(pem.get(), &text);
  return {{text, static_cast<std::size_t>(size)}, certificate.key_pem};
}

TEST(PinService, RefusesACertificateThatHasEndedOrIsNotGoodYet) {
  constexpr std::int64_t kDay_s = 86400;
  const Certificate made = *MakeCertificate(kServiceCertificateName);
  const auto refusal = [&](std::int64_t from_s, std::int64_t to_s) {
    const Certificate certificate = MadeGood(made, from_s, to_s);
    const TlsServer server(certificate);
    const auto pinned = PinService(server.address(), *CertificateHash(certificate.pem));
    EXPECT_TRUE(absl::IsFailedPrecondition(pinned.status())) << pinned.status();
    EXPECT_THAT(std::string(pinned.status().message()),
                HasSubstr("the certificate of the service at " + server.address()));
    return std::string(pinned.status().message());
  };
  const std::string ended = refusal(-2 * kDay_s, -kDay_s);
  EXPECT_THAT(ended, HasSubstr(" ended on "));
  EXPECT_THAT(ended, HasSubstr("restart the service, which makes a new one"));
  EXPECT_THAT(ended, HasSubstr("tuner token create"));
  EXPECT_THAT(refusal(kDay_s, 2 * kDay_s), HasSubstr("set the clock"));
}

TEST(PinService, SaysThatNobodyAnswers) {
  const auto nobody = PinService("127.0.0.1:1", std::string(64, '0'));
  EXPECT_TRUE(absl::IsUnavailable(nobody.status()));
  EXPECT_THAT(std::string(nobody.status().message()), HasSubstr("127.0.0.1:1"));
}

TEST(PinService, SaysThatTheServiceSpeaksNoTls) {
  httplib::Server server;
  const int port = server.bind_to_any_port("127.0.0.1");
  std::thread thread([&] { server.listen_after_bind(); });
  while (!server.is_running()) std::this_thread::yield();
  const auto plain = PinService("127.0.0.1:" + std::to_string(port), std::string(64, '0'));
  server.stop();
  thread.join();
  EXPECT_TRUE(absl::IsFailedPrecondition(plain.status()));
  EXPECT_THAT(std::string(plain.status().message()), HasSubstr("--plaintext"));
}

// What PinService says of a server that closes each connection once it has sent `answer`.
std::string RefusalOfOneThatCloses(std::string_view answer, absl::StatusCode code) {
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  EXPECT_EQ(bind(server, reinterpret_cast<sockaddr*>(&at), size), 0);
  EXPECT_EQ(getsockname(server, reinterpret_cast<sockaddr*>(&at), &size), 0);
  EXPECT_EQ(listen(server, 1), 0);
  std::thread thread([&] {
    const int client = accept(server, nullptr, nullptr);
    std::array<char, 4096> hello{};
    EXPECT_GT(recv(client, hello.data(), hello.size(), 0), 0);
    EXPECT_EQ(send(client, answer.data(), answer.size(), MSG_NOSIGNAL), std::ssize(answer));
    close(client);
  });
  const auto pinned =
      PinService("127.0.0.1:" + std::to_string(ntohs(at.sin_port)), std::string(64, '0'));
  thread.join();
  close(server);
  EXPECT_EQ(pinned.status().code(), code) << pinned.status();
  return std::string(pinned.status().message());
}

TEST(PinService, TellsAConnectionThatIsBrokenOffFromAServiceWithoutTls) {
  const std::string broken = RefusalOfOneThatCloses("", absl::StatusCode::kUnavailable);
  EXPECT_THAT(broken, HasSubstr("broke the connection off in the TLS handshake (closed)"));
  EXPECT_THAT(broken, Not(HasSubstr("speaks no TLS")));
  // The fatal alert "handshake failure".
  EXPECT_THAT(RefusalOfOneThatCloses({"\x15\x03\x03\x00\x02\x02\x28", 7},
                                     absl::StatusCode::kFailedPrecondition),
              HasSubstr("refuses the TLS handshake: "));
  EXPECT_THAT(RefusalOfOneThatCloses("HTTP/1.1 400 Bad Request\r\n\r\n",
                                     absl::StatusCode::kFailedPrecondition),
              HasSubstr("speaks no TLS, and the token holds the hash of a certificate"));
}

}  // namespace
}  // namespace espalier
