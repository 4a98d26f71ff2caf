#pragma once

#include <functional>
#include <memory>
#include <string>

#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_context.h"
#include "tuner/credentials/certificate.h"
#include "tuner/server/access/access_control.h"

namespace espalier {

// The token that a call shows; empty: none. Whether it is good has been looked at by then.
std::string TokenOf(const grpc::ServerContextBase& context);

// Credentials of a gRPC port that check a call's metadata with AccessControl, before gRPC reads any
// of its messages or gives it a thread. gRPC's own do so only with TLS; these do so without, too,
// where `tls` is empty. `own_user`: all connections of the port are the service's own user's.
// `refused` is called with each call that is not let in. AccessControl must outlive the server.
std::shared_ptr<grpc::ServerCredentials> GuardedCredentials(
    const Certificate& tls, const AccessControl& access, bool own_user,
    std::function<void(const absl::Status&)> refused);

}  // namespace espalier
