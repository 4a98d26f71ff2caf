#include "tuner/credentials/pinned_certificate.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/host_port.h"
#include "tuner/credentials/certificate.h"
#include "tuner/credentials/dial.h"
#include "tuner/credentials/hexadecimal.h"
#include "tuner/credentials/openssl_free.h"
#include "tuner/credentials/tls_connection.h"

namespace espalier {
namespace {

using TlsContext = std::unique_ptr<SSL_CTX, OpenSslFree<SSL_CTX_free>>;
using OpenSslConnection = std::unique_ptr<SSL, OpenSslFree<SSL_free>>;
using PeerCertificate = std::unique_ptr<X509, OpenSslFree<X509_free>>;
using MemoryText = std::unique_ptr<BIO, OpenSslFree<BIO_free_all>>;

// Why the handshake failed. `error` is SSL_get_error's.
absl::Status HandshakeFailure(SSL* tls, int error, const std::string& address,
                              const TlsTrust& trust) {
  const int system_error = errno;
  const unsigned long of_openssl = ERR_peek_error();
  const int reason = ERR_GET_REASON(of_openssl);
  const std::string service = absl::StrCat("the service at ", address);
  if (const long doubt = SSL_get_verify_result(tls); doubt != X509_V_OK) {
    return absl::FailedPreconditionError(
        absl::StrCat(service, " is not known by the certificates that are trusted (--tls-ca): ",
                     X509_verify_cert_error_string(doubt)));
  }
  if (error == SSL_ERROR_SYSCALL || reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
    const bool reset = error == SSL_ERROR_SYSCALL && system_error != 0;
    return absl::UnavailableError(
        absl::StrCat(service, " broke the connection off in the TLS handshake (",
                     reset ? std::strerror(system_error) : "closed",
                     "): try again; if it goes on doing so, it is another service"));
  }
  if (reason >= SSL_AD_REASON_OFFSET) {
    return absl::FailedPreconditionError(
        absl::StrCat(service, " refuses the TLS handshake: ", ERR_reason_error_string(of_openssl)));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(service, " speaks no TLS, and ",
                   trust.pin.empty() ? "certificates that are trusted were given (--tls-ca)"
                                     : "the token holds the hash of a certificate",
                   ": it is another service, or was started with --plaintext (then leave ",
                   trust.pin.empty() ? "--tls-ca" : "the last part of the token", " out)"));
}

// `address` and `trust` are for what is said where it fails.
absl::Status ShakeHands(SSL* tls, int socket, const std::string& address, const TlsTrust& trust,
                        const DialLimit& limit) {
  const absl::Cleanup forget = [] { ERR_clear_error(); };
  while (true) {
    ERR_clear_error();
    errno = 0;
    const int done = SSL_connect(tls);
    if (done == 1) return absl::OkStatus();
    const int error = SSL_get_error(tls, done);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) {
      return HandshakeFailure(tls, error, address, trust);
    }
    if (AwaitSocket(socket, error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, limit)) continue;
    if (!limit.over()) {
      return absl::CancelledError(absl::StrCat("the call to the service at ", address, " is over"));
    }
    return absl::UnavailableError(
        absl::StrCat("the service at ", address, " does not answer in time"));
  }
}

// The name by which a certificate is asked for: the first of its alternatives.
std::string FirstName(X509* certificate) {
  auto* names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  std::string first;
  for (int i = 0; first.empty() && i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
    if (name->type != GEN_DNS) continue;
    first.assign(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
                 static_cast<std::size_t>(ASN1_STRING_length(name->d.dNSName)));
  }
  GENERAL_NAMES_free(names);
  return first.empty() ? kServiceCertificateName : first;
}

std::string PemOf(X509* certificate) {
  const MemoryText text(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(text.get(), certificate);
  char* data = nullptr;
  const long size = BIO_get_mem_data(text.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

absl::Status CheckShown(const std::string& address, const std::string& certificate,
                        const std::string& pin) {
  ESPALIER_ASSIGN_OR_RETURN(const std::string hash, CertificateHash(certificate));
  if (!SameText(hash, pin)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the service at ", address, " shows a certificate with hash ", hash.substr(0, 16),
        "..., and the token is for ", pin.substr(0, 16),
        "...: it is the token of another pool, the service has a new certificate (ask for a new "
        "token: `tuner token create`), or somebody stands between. Nothing was sent"));
  }
  ESPALIER_ASSIGN_OR_RETURN(const Validity validity, CertificateValidity(certificate));
  const Time now = Now();
  if (now < validity.to && validity.from < now) return absl::OkStatus();
  const bool ended = validity.to <= now;
  return absl::FailedPreconditionError(absl::StrCat(
      "the certificate of the service at ", address, ended ? " ended on " : " is good from ",
      MomentText(ended ? validity.to : validity.from), ", and it is ", MomentText(now),
      ended ? ": restart the service, which makes a new one, and ask for a new token (`tuner token "
              "create`)"
            : ": set the clock of this machine or of the service's"));
}

class DialledConnection final : public TlsConnection {
 public:
  explicit DialledConnection(int socket) : socket_(socket) {}
  ~DialledConnection() override {
    if (tls_ != nullptr) SSL_shutdown(tls_.get());
    ERR_clear_error();
    close(socket_);
  }

  absl::Status Prepare(const std::string& host, const TlsTrust& trust, bool http2) {
    context_.reset(SSL_CTX_new(TLS_client_method()));
    if (context_ == nullptr) return absl::InternalError("OpenSSL cannot make a connection");
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
    SSL_CTX_set_mode(context_.get(),
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (trust.pin.empty()) TrustRoots(trust.roots);
    tls_.reset(SSL_new(context_.get()));
    if (tls_ == nullptr) return absl::InternalError("OpenSSL cannot make a connection");
    constexpr std::array<unsigned char, 3> kHttp2 = {2, 'h', '2'};
    if (http2) SSL_set_alpn_protos(tls_.get(), kHttp2.data(), kHttp2.size());
    if (trust.pin.empty()) {
      // An address is no name, and is compared as what it is.
      if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls_.get()), host.c_str()) != 1) {
        SSL_set1_host(tls_.get(), host.c_str());
        SSL_set_tlsext_host_name(tls_.get(), host.c_str());
      }
      SSL_set_verify(tls_.get(), SSL_VERIFY_PEER, nullptr);
    } else {
      SSL_set_tlsext_host_name(tls_.get(), kServiceCertificateName);
    }
    SSL_set_fd(tls_.get(), socket_);
    return absl::OkStatus();
  }

  absl::Status LookAtCertificate() {
    const PeerCertificate shown(SSL_get1_peer_certificate(tls_.get()));
    if (shown == nullptr) {
      return absl::FailedPreconditionError("the service shows no certificate");
    }
    certificate_ = PemOf(shown.get());
    name_ = FirstName(shown.get());
    return absl::OkStatus();
  }

  SSL* tls() const override { return tls_.get(); }
  int socket() const override { return socket_; }
  const std::string& certificate() const override { return certificate_; }
  const std::string& name() const override { return name_; }

 private:
  void TrustRoots(const std::string& pem) {
    const MemoryText text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    X509_STORE* store = SSL_CTX_get_cert_store(context_.get());
    while (true) {
      const PeerCertificate root(PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr));
      if (root == nullptr) break;
      X509_STORE_add_cert(store, root.get());
    }
    ERR_clear_error();
  }

  const int socket_;
  TlsContext context_;
  OpenSslConnection tls_;
  std::string certificate_;
  std::string name_;
};

}  // namespace

absl::StatusOr<PinnedService> PinService(const std::string& address, const std::string& pin,
                                         double timeout_s) {
  ESPALIER_ASSIGN_OR_RETURN(
      const std::unique_ptr<TlsConnection> connection,
      DialTls(address, {pin, {}}, /*http2=*/true, DialLimit::Within(timeout_s)));
  return PinnedService{connection->certificate(), connection->name()};
}

absl::StatusOr<std::unique_ptr<TlsConnection>> DialTls(const std::string& address,
                                                       const TlsTrust& trust, bool http2,
                                                       const DialLimit& limit) {
  ESPALIER_ASSIGN_OR_RETURN(const HostPort where, ParseHostPort(address));
  ESPALIER_ASSIGN_OR_RETURN(const int socket, DialTcp(address, limit));
  auto connection = std::make_unique<DialledConnection>(socket);
  ESPALIER_RETURN_IF_ERROR(connection->Prepare(where.host, trust, http2));
  // Whom to trust is told by the hash, or by OpenSSL; nothing is said before.
  ESPALIER_RETURN_IF_ERROR(ShakeHands(connection->tls(), socket, address, trust, limit));
  ESPALIER_RETURN_IF_ERROR(connection->LookAtCertificate());
  if (!trust.pin.empty()) {
    ESPALIER_RETURN_IF_ERROR(CheckShown(address, connection->certificate(), trust.pin));
  }
  return connection;
}

}  // namespace espalier
