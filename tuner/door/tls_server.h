#pragma once

#include "base/status.h"
#include "tuner/credentials/tls_context.h"

namespace espalier {

// A server's side of TLS for HTTP/2: no tickets, no renegotiation, no buffer while nothing is under
// way. Errors are MakeTlsServer's.
absl::StatusOr<TlsContextPtr> MakeHttp2TlsServer(const Certificate& certificate);

// A thread that calls OpenSSL writes to sockets whose other end may be gone, which would end the
// process.
void BlockSigpipe();

}  // namespace espalier
