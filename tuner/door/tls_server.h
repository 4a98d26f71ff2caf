#pragma once

#include <memory>

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

// A server's side of TLS 1.2 or newer, for HTTP/2: no tickets, no renegotiation, no buffer while
// nothing is under way. The error says what is wrong with the certificate or its key.
absl::StatusOr<TlsContextPtr> MakeTlsServer(const Certificate& certificate);

// A thread that calls OpenSSL writes to sockets whose other end may be gone, which would end the
// process.
void BlockSigpipe();

}  // namespace espalier
