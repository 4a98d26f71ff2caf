#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tuner/base/status.h"
#include "tuner/server/listen_address.h"
#include "tuner/server/loop.h"
#include "tuner/server/metrics.h"

namespace espalier {

inline constexpr std::size_t kMaxHttpBody = 1 << 20;  // bytes
inline constexpr std::size_t kHttpThreads = 4;
inline constexpr int kHttpTimeout_s = 10;             // for a client to send and to take

// The HTTP door: health, metrics, and JSON of the public messages through the same operations as
// gRPC. Loop and metrics must outlive it.
//
//   GET  /healthz                        "ok", without token
//   GET  /metrics                        Prometheus text
//   GET  /api/studies                    ListStudiesResponse
//   GET  /api/studies/NAME               StudyDetails; ?values=0 without curves, ?active=1
//   GET  /api/studies/NAME/trials        {"trials": [...]}; the same two
//   GET  /api/pool                       Pool
//   POST /api/trials/ID/tell             {"value": .., "step": .., "final": ..} -> TellResponse
// Errors are {"error": message, "code": name of the status}.
class HttpServer {
 public:
  // Port 0 takes any free one. An empty token lets everybody in.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const ListenAddress& address,
                                                           const std::string& token, Loop& loop,
                                                           Metrics& metrics);
  virtual ~HttpServer() = default;

  virtual std::string address() const = 0;
  virtual void Stop() = 0;
};

}  // namespace espalier
