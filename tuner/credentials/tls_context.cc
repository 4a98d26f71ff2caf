#include "tuner/credentials/tls_context.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "absl/strings/str_cat.h"
#include "tuner/credentials/openssl_free.h"

namespace espalier {
namespace {

using Text = std::unique_ptr<BIO, OpenSslFree<BIO_free>>;
using CertificatePtr = std::unique_ptr<X509, OpenSslFree<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, OpenSslFree<EVP_PKEY_free>>;

Text TextOf(const std::string& pem) {
  return Text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// The server's own certificate, then those that vouch for it.
bool UseChain(SSL_CTX* context, const std::string& pem) {
  const Text text = TextOf(pem);
  const CertificatePtr own(PEM_read_bio_X509_AUX(text.get(), nullptr, nullptr, nullptr));
  if (own == nullptr || SSL_CTX_use_certificate(context, own.get()) != 1) return false;
  while (CertificatePtr next{PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr)}) {
    if (SSL_CTX_add0_chain_cert(context, next.get()) != 1) return false;
    static_cast<void>(next.release());  // it is the context's now
  }
  // The text has ended, or goes on with what is no certificate.
  const unsigned long last = ERR_peek_last_error();
  if (ERR_GET_LIB(last) != ERR_LIB_PEM || ERR_GET_REASON(last) != PEM_R_NO_START_LINE) return false;
  ERR_clear_error();
  return true;
}

// A key that asks for a password would have it asked for at a terminal, which no service has.
int NoPassword(char*, int, int, void*) { return -1; }

bool UseKey(SSL_CTX* context, const std::string& pem) {
  const Text text = TextOf(pem);
  const KeyPtr key(PEM_read_bio_PrivateKey(text.get(), nullptr, NoPassword, nullptr));
  return key != nullptr && SSL_CTX_use_PrivateKey(context, key.get()) == 1 &&
         SSL_CTX_check_private_key(context) == 1;
}

// What OpenSSL says of its newest error.
absl::Status Wrong(const std::string& what) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return absl::InvalidArgumentError(
      absl::StrCat("TLS ", what, ": ", reason == nullptr ? "unknown error" : reason));
}

}  // namespace

void FreeTls::operator()(ssl_st* tls) const { SSL_free(tls); }
void FreeTls::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }

absl::StatusOr<TlsContextPtr> MakeTlsServer(const Certificate& certificate,
                                            const CertificateNames& names) {
  if (certificate.pem.empty()) return nullptr;
  TlsContextPtr context(SSL_CTX_new(TLS_server_method()));
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  ERR_clear_error();
  if (!UseChain(context.get(), certificate.pem)) return Wrong(names.certificate);
  if (!UseKey(context.get(), certificate.key_pem)) return Wrong(names.key);
  return context;
}

}  // namespace espalier
