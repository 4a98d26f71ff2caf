#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"

namespace espalier {

namespace v1 {
class AgentMessage;
class ServiceMessage;
}  // namespace v1

// One stream between an agent and the service, as the agent makes it. One thread at a time may read
// and one may write; Cancel may be called by any, from the beginning on.
class ServiceCall {
 public:
  virtual ~ServiceCall() = default;

  // Begins it, and waits until there is a connection or none can be had. Called first.
  virtual void Open() = 0;
  // Wait. False: the call is over.
  virtual bool Read(v1::ServiceMessage* message) = 0;
  virtual bool Write(const v1::AgentMessage& message) = 0;
  // The service's end, as gRPC writes it; once something was read.
  virtual std::string peer() const = 0;
  virtual void Cancel() = 0;
  // Why it is over: after Read has said so, when nothing is being written.
  virtual absl::Status Finish() = 0;
};

// Makes a call that is to be opened. The error says why none can be made.
using ServiceDialer = std::function<absl::StatusOr<std::unique_ptr<ServiceCall>>()>;

// By gRPC, on a channel of its own for each call: a shared one would keep gRPC's own, longer
// backoff. `tls_roots` (PEM) empty: in the clear, unless the token holds the hash of the service's
// certificate, which is asked for then.
ServiceDialer DialByGrpc(std::string address, std::string token, std::string tls_roots);

}  // namespace espalier
