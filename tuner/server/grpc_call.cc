#include "tuner/server/grpc_call.h"

#include <string>

#include "grpcpp/grpcpp.h"

namespace espalier {

grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

void GrpcCall::Finish(const absl::Status& status, const Answered& answered) const {
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  answered(method, status, taken.count());
  reactor->Finish(ToGrpc(status));
}

}  // namespace espalier
