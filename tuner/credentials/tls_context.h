#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "tuner/credentials/certificate.h"

struct ssl_st;
struct ssl_ctx_st;

namespace espalier {

struct FreeTls {
  void operator()(ssl_st* tls) const;
  void operator()(ssl_ctx_st* context) const;
};
using TlsPtr = std::unique_ptr<ssl_st, FreeTls>;
using TlsContextPtr = std::unique_ptr<ssl_ctx_st, FreeTls>;

// What a certificate and its key are called in errors, such as "certificate \"FILE\"".
struct CertificateNames {
  std::string certificate = "certificate";
  std::string key = "key";
};

// A server's side of TLS 1.2 or newer. The certificate may be followed by those that vouch for it.
// An empty one makes none (null): what is spoken in the clear needs no context. The error names
// what is wrong, the certificate or the key, also where they do not belong together.
absl::StatusOr<TlsContextPtr> MakeTlsServer(const Certificate& certificate,
                                            const CertificateNames& names = {});

}  // namespace espalier
