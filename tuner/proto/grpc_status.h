#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"

namespace espalier {

// The codes of both are the same numbers.
inline grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

inline absl::Status FromGrpc(const grpc::Status& status) {
  return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
}

}  // namespace espalier
