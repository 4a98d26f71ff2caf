#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tuner/api/tuner.h"
#include "tuner/core/state/change.h"
#include "tuner/server/grpc/grpc_call.h"
#include "tuner/server/http/http_route.h"

namespace grpc {
class Service;
}

namespace espalier {

// A way into the service for the clients of another system, in that system's protocol: NNI's
// manager, programs that use Optuna. A frontend brings what it answers over HTTP and over gRPC. The
// service listens for all of its frontends, lets callers in as the table of permissions says, and
// counts the calls; it knows none of them by name.
class Frontend {
 public:
  virtual ~Frontend() = default;

  // The name under which metrics count its gRPC calls.
  virtual const char* name() const = 0;

  // Takes the state that is stored when the service starts. Called first.
  virtual void Load(const TunerState& /*state*/) {}
  // Takes what has been committed: on the owner's thread, before the clients that wait for it are
  // answered. Must not wait.
  virtual void Take(const std::vector<Change>& /*changes*/, const TunerState& /*state*/) {}

  // Its routes, asked for once, where HTTP is served. Frontend and tuner outlive them.
  virtual std::vector<HttpRoute> Routes(Tuner& /*tuner*/) { return {}; }
  // Its gRPC service, asked for once; null: it has none. It tells `answered` of each call. Frontend
  // and tuner outlive it.
  virtual std::unique_ptr<grpc::Service> MakeGrpcService(Tuner& tuner, Answered answered);

  // The service serves: what the frontend does by itself begins. The tuner outlives its Close.
  virtual void Start(Tuner& /*tuner*/) {}

  // The service shuts down: what it does by itself has ended when this returns, calls
  // that wait are answered, and none waits from now on. May be called again.
  virtual void Close() {}
};

using Frontends = std::vector<std::unique_ptr<Frontend>>;
using MakeFrontend = std::function<std::unique_ptr<Frontend>()>;

}  // namespace espalier
