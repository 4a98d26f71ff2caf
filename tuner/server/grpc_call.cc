#include "tuner/server/grpc_call.h"

#include "grpcpp/grpcpp.h"
#include "tuner/proto/grpc_status.h"

namespace espalier {

void GrpcCall::Finish(const absl::Status& status, const Answered& answered) const {
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  answered(method, status, taken.count());
  reactor->Finish(ToGrpc(status));
}

}  // namespace espalier
