#pragma once

#include <memory>

#include "grpcpp/grpcpp.h"
#include "tuner/server/access/browser_sessions.h"
#include "tuner/server/grpc/grpc_call.h"

namespace espalier {

// espalier.v1.Sessions. `sessions` must outlive it; null: there is no page.
std::unique_ptr<grpc::Service> MakeSessionsService(BrowserSessions* sessions, Answered answered);

}  // namespace espalier
