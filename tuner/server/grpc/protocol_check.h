#pragma once

#include <string>

#include "absl/status/status.h"
#include "grpcpp/grpcpp.h"

namespace espalier {

// Whether the caller, `who` in errors, speaks a version of the protocol that this service speaks,
// by what the call carries under kProtocolHeader. FAILED_PRECONDITION: it does not; the error names
// both versions and which of the two has to be upgraded. A call that carries nothing, as those of
// other programs, speaks the first version.
absl::Status CheckProtocol(const grpc::ServerContextBase& context, const std::string& who);

// Makes the answer carry what this service speaks. To be called before anything is answered.
void TellProtocol(grpc::ServerContextBase& context);

}  // namespace espalier
