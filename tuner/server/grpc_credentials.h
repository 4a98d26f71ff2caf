#pragma once

#include <functional>
#include <memory>

#include "grpcpp/security/server_credentials.h"
#include "tuner/server/access_control.h"
#include "tuner/server/tls.h"

namespace espalier {

// Credentials of a gRPC port that ask the access by a call's metadata, before gRPC reads any of
// its messages or gives it a thread. gRPC's own have a place for that only with TLS; this has one
// without too, where `tls` is empty. `own_user`: all of the port's connections are the service's
// own user's. `refused` is told of each call that is not let in. The access must outlive the
// server.
std::shared_ptr<grpc::ServerCredentials> GuardedCredentials(
    const TlsPair& tls, const AccessControl& access, bool own_user,
    std::function<void(const absl::Status&)> refused);

}  // namespace espalier
