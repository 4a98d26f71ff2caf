#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tuner/base/status.h"
#include "tuner/server/doorkeeper.h"
#include "tuner/server/listen_address.h"
#include "tuner/server/loop.h"
#include "tuner/server/metrics.h"
#include "tuner/server/tls.h"

namespace espalier {

namespace nni {
class Experiments;
}

inline constexpr std::size_t kMaxHttpBody = 1 << 20;  // bytes

// The HTTP door: health, metrics, and JSON of the public messages through the same operations as
// gRPC, by the routes of http_routes.h. docs/http.md tells users about it. Connections are kept
// (http_connections.h). Loop and metrics must outlive it. Errors are {"error": message, "code":
// name of the status}.
class HttpServer {
 public:
  // Port 0 takes any free one. `dashboard` is the URL of its pages, empty where they are not
  // served. The doorkeeper must outlive it, too.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      const ListenAddress& address, const TlsFiles& tls, const Doorkeeper& doorkeeper,
      const std::string& dashboard, nni::Experiments& nni, Loop& loop, Metrics& metrics);
  virtual ~HttpServer() = default;

  virtual std::string address() const = 0;
  virtual void Stop() = 0;
};

}  // namespace espalier
