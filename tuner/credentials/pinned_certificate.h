#pragma once

#include <string>

#include "base/status.h"

namespace espalier {

inline constexpr double kPinTimeout_s = 10;

// The certificate that `address` (HOST:PORT) shows, PEM, if its hash is the token's and it has not
// ended. A client that then trusts only that certificate, under the name `name` (for
// grpc.ssl_target_name_override), speaks to that service and to no man in the middle.
struct PinnedService {
  std::string certificate;
  std::string name;
};

// UNAVAILABLE: there is no answer, or the connection breaks off in the handshake.
// FAILED_PRECONDITION: the service speaks no TLS, or shows another certificate, or one that has
// ended. Each error says what to do.
absl::StatusOr<PinnedService> PinService(const std::string& address, const std::string& pin,
                                         double timeout_s = kPinTimeout_s);

}  // namespace espalier
