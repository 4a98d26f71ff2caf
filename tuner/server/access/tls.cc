#include "tuner/server/access/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"

namespace espalier {

namespace {

absl::StatusOr<std::string> ReadPem(const std::string& path, std::string_view what) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  const auto problem = [&](std::string_view reason) {
    return absl::InvalidArgumentError(
        absl::StrCat("TLS ", std::string(what), " \"", path, "\": ", std::string(reason)));
  };
  if (!file) return problem("cannot be read");
  if (text.str().find("-----BEGIN ") == std::string::npos) {
    return problem("is no PEM file, which begins with -----BEGIN");
  }
  return std::move(text).str();
}

// What OpenSSL says of its newest error.
std::string Reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason == nullptr ? "unknown error" : reason;
}

}  // namespace

absl::StatusOr<TlsPair> ReadTls(const TlsFiles& files) {
  TlsPair pair;
  ESPALIER_ASSIGN_OR_RETURN(pair.certificate, ReadPem(files.certificate, "certificate"));
  ESPALIER_ASSIGN_OR_RETURN(pair.key, ReadPem(files.key, "key"));
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_server_method()),
                                                             SSL_CTX_free);
  if (SSL_CTX_use_certificate_chain_file(context.get(), files.certificate.c_str()) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("TLS certificate \"", files.certificate, "\": ", Reason()));
  }
  // Says too if it is not the certificate's.
  if (SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1) {
    return absl::InvalidArgumentError(absl::StrCat("TLS key \"", files.key, "\": ", Reason()));
  }
  return pair;
}

}  // namespace espalier
