#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "tuner/api/tuner.h"
#include "tuner/credentials/certificate.h"
#include "tuner/server/access/access_control.h"
#include "tuner/server/access/browser_sessions.h"
#include "tuner/server/access/listen_address.h"
#include "tuner/server/access/proxied_at.h"
#include "tuner/server/http/http_route.h"
#include "tuner/server/loop/metrics.h"

namespace espalier {

inline constexpr std::size_t kMaxHttpBody = 1 << 20;  // bytes
inline constexpr std::size_t kMaxHttpLater = 1024;    // calls whose answers come later
inline constexpr int kRetryHttp_s = 1;                // after one call too many

// HTTP by a table of routes: the service's own, which are health, metrics, and JSON of the public
// messages through the same operations as gRPC (http_routes.h; docs/http.md tells users about
// them), and those of its frontends. Connections are kept (http_connections.h). Errors are
// {"error": message, "code": name of the status}.
class HttpServer {
 public:
  // Port 0 takes any free one; an empty certificate: it speaks in the clear. Paths with the prefix
  // of a proxy are those without it. Null `sessions`: browsers have none. What is given by
  // reference or pointer must outlive the server.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      const ListenAddress& address, const Certificate& tls, const AccessControl& access,
      std::vector<HttpRoute> routes, Tuner& tuner, Metrics& metrics, ProxiedAt proxied = {},
      const BrowserSessions* sessions = nullptr);
  virtual ~HttpServer() = default;

  virtual std::string address() const = 0;
  virtual void Stop() = 0;
};

}  // namespace espalier
