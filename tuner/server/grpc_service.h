#pragma once

#include <memory>
#include <string>

#include "tuner/base/status.h"
#include "tuner/server/agents.h"
#include "tuner/server/listen_address.h"
#include "tuner/server/metrics.h"
#include "tuner/server/tls.h"

namespace espalier {

inline constexpr int kMaxMessage = 64 << 20;   // bytes, either way
inline constexpr int kMaxGrpcThreads = 512;    // each agent's stream takes one
inline constexpr double kShutdownGrace_s = 2;  // for calls under way

// The gRPC door: espalier.v1.Tuner. Tuner, agents and metrics must outlive it.
class GrpcServer {
 public:
  // Port 0 takes any free one. An empty token lets everybody in, an empty pair speaks in the clear.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(const ListenAddress& address,
                                                           const std::string& token,
                                                           const TlsPair& tls, Tuner& tuner,
                                                           Agents& agents, Metrics& metrics);
  virtual ~GrpcServer() = default;

  virtual std::string address() const = 0;
  // Refuses new calls and waits for those under way; agents' streams must be broken by then.
  virtual void Stop() = 0;
};

}  // namespace espalier
