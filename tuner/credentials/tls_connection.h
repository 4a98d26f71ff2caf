#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "tuner/credentials/dial.h"

struct ssl_st;

namespace espalier {

// How the other end is identified: by the hash of its certificate, as tokens carry it, or by the
// authorities (PEM) that vouch for it and its address.
struct TlsTrust {
  std::string pin{};
  std::string roots{};

  bool any() const { return !pin.empty() || !roots.empty(); }
};

// A connection to a peer that has been identified: the handshake is done, and nothing was sent
// before. The socket does not block.
class TlsConnection {
 public:
  virtual ~TlsConnection() = default;  // closes

  virtual ssl_st* tls() const = 0;
  virtual int socket() const = 0;
  virtual const std::string& certificate() const = 0;  // PEM, what it shows
  virtual const std::string& name() const = 0;         // that it is made out to
};

// `http2`: offers that protocol, as gRPC wants it. UNAVAILABLE: there is no answer, or not in time,
// or the connection breaks off in the handshake. CANCELLED: by the limit. FAILED_PRECONDITION: the
// other end speaks no TLS, or is not the one that is trusted. Each error says what to do.
absl::StatusOr<std::unique_ptr<TlsConnection>> DialTls(const std::string& address,
                                                       const TlsTrust& trust, bool http2,
                                                       const DialLimit& limit);

}  // namespace espalier
