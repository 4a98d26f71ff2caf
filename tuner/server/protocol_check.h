#pragma once

#include <string>

#include "absl/status/status.h"
#include "grpcpp/grpcpp.h"

namespace espalier {

// Whether `who` has called in a version of the protocol that this service speaks, by what the call
// carries under kProtocolHeader; FAILED_PRECONDITION with both versions and who is to be upgraded
// if not. Who carries nothing, as programs of others, speaks the first.
absl::Status CheckProtocol(const grpc::ServerContextBase& context, const std::string& who);

// Has the answer carry what this service speaks. Before anything is answered.
void TellProtocol(grpc::ServerContextBase& context);

}  // namespace espalier
