#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "tuner/credentials/certificate.h"
#include "tuner/server/access/access_control.h"
#include "tuner/server/access/listen_address.h"

namespace grpc {
class Service;
}

namespace espalier {

class Agents;
class BrowserSessions;
class Metrics;
class Tuner;

inline constexpr int kMaxMessage = 64 << 20;   // bytes, either way
inline constexpr int kMaxGrpcThreads = 512;    // of calls under way; agents' streams take none
inline constexpr int kMaxGrpcWaits = 256;      // of these, calls that wait for an agent
inline constexpr double kShutdownGrace_s = 2;  // for calls under way

inline constexpr int kHandshake_s = 10;     // for a stranger to begin to speak gRPC
inline constexpr int kMaxGrpcIdle_s = 300;  // of a connection without a call

using GrpcServices = std::vector<std::unique_ptr<grpc::Service>>;

// What is served, and where. All that is referred to must outlive the server.
struct GrpcPlace {
  ListenAddress address;  // port 0: any free one
  Certificate tls;        // empty: it speaks in the clear
  const AccessControl& access;
  Tuner& tuner;
  Agents& agents;
  Metrics& metrics;
  GrpcServices of_frontends{};
  BrowserSessions* sessions = nullptr;  // null: there is no page
};

// The gRPC services: espalier.v1.Tuner (the table of tuner/api/operations.h), espalier.v1.Slots,
// espalier.v1.Sessions and those of the frontends. The user of a connection is looked up when it
// comes (it waits outside until its client says something); the service's own user's goes to gRPC
// at once, those of others when the head of their first call has shown a token (GrpcDoor). The
// rights of a call are looked up when its head has come. What the frontends' services use must
// outlive it.
class GrpcServer {
 public:
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(GrpcPlace place);
  virtual ~GrpcServer() = default;

  virtual std::string address() const = 0;
  // Refuses new calls and waits for those under way; agents' streams must be broken by then.
  virtual void Stop() = 0;
};

}  // namespace espalier
