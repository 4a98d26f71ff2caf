#pragma once

#include <chrono>
#include <functional>

#include "base/status.h"

namespace grpc {
class ServerUnaryReactor;
}  // namespace grpc

namespace espalier {

// Called with each answer of a gRPC service and how long it took, from any thread.
using Answered =
    std::function<void(const char* method, const absl::Status& status, double seconds)>;

// Counts them in the metrics, which must outlive it, under the name of the frontend.
class Metrics;
Answered CountIn(Metrics& metrics, const char* frontend);

// A unary call under way, of a service that keeps no thread for it.
struct GrpcCall {
  const char* method = nullptr;
  grpc::ServerUnaryReactor* reactor = nullptr;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();

  // Tells `answered` and ends the call; once. A message to answer with is filled in before.
  void Finish(const absl::Status& status, const Answered& answered) const;
};

}  // namespace espalier
