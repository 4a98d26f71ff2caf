#include "tuner/server/grpc/grpc_call.h"

#include "grpcpp/grpcpp.h"
#include "tuner/proto/grpc_status.h"
#include "tuner/server/loop/metrics.h"

namespace espalier {

Answered CountIn(Metrics& metrics, const char* frontend) {
  return [&metrics, frontend](const char* method, const absl::Status& status, double seconds) {
    metrics.CountRequest(frontend, method, absl::StatusCodeToString(status.code()));
    metrics.CountLatency(frontend, method, seconds);
  };
}

void GrpcCall::Finish(const absl::Status& status, const Answered& answered) const {
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  answered(method, status, taken.count());
  reactor->Finish(ToGrpc(status));
}

}  // namespace espalier
