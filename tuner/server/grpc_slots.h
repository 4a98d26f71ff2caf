#pragma once

#include <memory>

#include "adapters/optuna/storage_service.h"
#include "grpcpp/grpcpp.h"
#include "tuner/api/tuner.h"

namespace espalier {

// espalier.v1.Slots. Calls that wait hold no thread. `tuner` must outlive it.
std::unique_ptr<grpc::Service> MakeSlotsService(Tuner& tuner, optuna_storage::Answered answered);

}  // namespace espalier
