#pragma once

#include <memory>

#include "grpcpp/grpcpp.h"
#include "tuner/api/tuner.h"
#include "tuner/server/grpc/grpc_call.h"

namespace espalier {

// espalier.v1.Slots. Calls that wait hold no thread. `tuner` must outlive it.
std::unique_ptr<grpc::Service> MakeSlotsService(Tuner& tuner, Answered answered);

}  // namespace espalier
