#pragma once

#include <functional>

#include "absl/status/status.h"
#include "grpcpp/grpcpp.h"
#include "tuner.pb.h"

namespace espalier {

class Agents;

using AgentReactor = grpc::ServerBidiReactor<v1::AgentMessage, v1::ServiceMessage>;

// The stream of one agent, from Hello to its end. It holds no thread: it is called when a message
// has come or gone. `cancel` breaks the call, from any thread; `ended` gets the final status.
// Agents must outlive it; it deletes itself.
AgentReactor* StartAgentStream(grpc::CallbackServerContext& context, std::function<void()> cancel,
                               Agents& agents, std::function<void(const absl::Status&)> ended);

}  // namespace espalier
