#include "tuner/door/tls_server.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <signal.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace espalier {
namespace {

constexpr unsigned char kHttp2[] = {2, 'h', '2'};

struct FreePem {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
template <typename T>
using Owned = std::unique_ptr<T, FreePem>;

int ChooseHttp2(SSL*, const unsigned char** chosen, unsigned char* size,
                const unsigned char* offered, unsigned offered_size, void*) {
  unsigned char* found = nullptr;
  if (SSL_select_next_proto(&found, size, kHttp2, sizeof(kHttp2), offered, offered_size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

Owned<BIO> Text(const std::string& pem) {
  return Owned<BIO>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// The server's own certificate, then those that vouch for it.
bool UseChain(SSL_CTX* context, const std::string& pem) {
  const Owned<BIO> text = Text(pem);
  const Owned<X509> own(PEM_read_bio_X509_AUX(text.get(), nullptr, nullptr, nullptr));
  if (own == nullptr || SSL_CTX_use_certificate(context, own.get()) != 1) return false;
  while (X509* next = PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr)) {
    if (SSL_CTX_add0_chain_cert(context, next) == 1) continue;
    X509_free(next);
    return false;
  }
  ERR_clear_error();  // that there is no further one
  return true;
}

bool UseKey(SSL_CTX* context, const std::string& pem) {
  const Owned<BIO> text = Text(pem);
  const Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(text.get(), nullptr, nullptr, nullptr));
  return key != nullptr && SSL_CTX_use_PrivateKey(context, key.get()) == 1;
}

}  // namespace

void FreeTls::operator()(ssl_st* tls) const { SSL_free(tls); }
void FreeTls::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }

absl::StatusOr<TlsContextPtr> MakeTlsServer(const Certificate& certificate) {
  TlsContextPtr context(SSL_CTX_new(TLS_server_method()));
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_read_ahead(context.get(), 1);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_alpn_select_cb(context.get(), ChooseHttp2, nullptr);
  if (UseChain(context.get(), certificate.pem) && UseKey(context.get(), certificate.key_pem)) {
    return context;
  }
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return absl::InvalidArgumentError(absl::StrCat(
      "TLS certificate: ", reason == nullptr ? "not a certificate and its key" : reason));
}

void BlockSigpipe() {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
}

}  // namespace espalier
