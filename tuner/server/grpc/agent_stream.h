#pragma once

#include <functional>

#include "absl/status/status.h"
#include "grpcpp/grpcpp.h"
#include "tuner.pb.h"
#include "tuner/server/grpc/agents.h"

namespace espalier {

// The stream of one agent, from Hello to its end. It holds no thread: it is called when a message
// has come or gone. `ended` gets the final status. Agents must outlive it; it deletes itself.
grpc::ServerBidiReactor<v1::AgentMessage, v1::ServiceMessage>* StartAgentStream(
    grpc::CallbackServerContext& context, Agents& agents,
    std::function<void(const absl::Status&)> ended);

}  // namespace espalier
