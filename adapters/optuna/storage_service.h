#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "grpcpp/grpcpp.h"
#include "tuner/api/tuner.h"

namespace espalier::optuna_storage {

// Told of each answer and how long it took, from any thread. Who may call is the affair of the
// server that carries the service.
using Answered =
    std::function<void(const char* method, const absl::Status& status, double seconds)>;

// A call under way.
struct Call {
  const char* method = nullptr;
  grpc::ServerUnaryReactor* reactor = nullptr;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
};

// Optuna's storage service (optuna.StorageService) on the tuner's own studies and trials: what one
// door writes the other shows. All 19 calls are answered without a thread that waits: writes when
// they are durable, reads from memory between two commits. `tuner` must outlive it.
//
// Codes are those of Optuna's own server: NOT_FOUND for unknown ids and names, ALREADY_EXISTS for a
// study's name, FAILED_PRECONDITION for a trial that has ended, INVALID_ARGUMENT for a distribution
// that does not fit, UNKNOWN for texts that cannot be read. Trials of the pool can be read and take
// attributes; what else would change them is PERMISSION_DENIED.
std::unique_ptr<grpc::Service> MakeStorageService(Tuner& tuner, Answered answered);

}  // namespace espalier::optuna_storage
