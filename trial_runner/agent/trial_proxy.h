#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "handover.pb.h"
#include "trial_runner/agent/agent.h"
#include "tuner/forwarding/forwarder.h"

namespace espalier {

// How programs of trials reach the service.
struct ServiceAccess {
  std::string service;      // ESPALIER_SERVICE, HOST:PORT
  std::string http;         // ESPALIER_HTTP, a URL; may be empty
  std::string tls_ca_file;  // ESPALIER_TLS_CA; may be empty
  // Through the agent, in the clear: a token's hash of the service's certificate is for the agent.
  bool forwarded = false;
};

// The access that the options name, where trials speak with the service themselves.
ServiceAccess DirectAccess(const AgentOptions& options);

// Two ports of loopback, for gRPC and for HTTP, behind which the service is: trials need neither
// its address nor its certificate, and may be programs that speak no TLS. They are not opened if
// agent and service share a machine and communicate unencrypted, because the service then asks the
// kernel which user owns each trial's connection.
class TrialProxy {
 public:
  // Opens the ports, or goes on with those of the former agent. The error says why none can be
  // opened.
  static absl::StatusOr<TrialProxy> Open(const AgentOptions& options,
                                         const v1::AgentHandover* handover);

  const ServiceAccess& access() const { return access_; }
  void HandOver(v1::AgentHandover& handover) const;

 private:
  ServiceAccess access_;
  std::unique_ptr<Forwarder> service_;
  std::unique_ptr<Forwarder> http_;
};

}  // namespace espalier
