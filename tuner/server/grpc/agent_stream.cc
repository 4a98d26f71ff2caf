#include "tuner/server/grpc/agent_stream.h"

#include <memory>
#include <string>
#include <utility>

#include "base/guarded.h"
#include "spdlog/spdlog.h"
#include "tuner/api/tuner.h"
#include "tuner/proto/grpc_status.h"
#include "tuner/server/grpc/agent_session.h"
#include "tuner/server/grpc/agents.h"
#include "tuner/server/grpc/grpc_call.h"
#include "tuner/server/grpc/protocol_check.h"

namespace espalier {

namespace {

class AgentStream final : public AgentReactor {
 public:
  AgentStream(grpc::CallbackServerContext& context, std::function<void()> cancel, Agents& agents,
              std::function<void(const absl::Status&)> ended)
      : context_(context), agents_(agents), ended_(std::move(ended)) {
    session_ = std::make_shared<AgentSession>(
        AgentStreamCalls{.write =
                             [this](const v1::ServiceMessage* message) {
                               agents_.sender().Post([this, message] { Send(message); });
                             },
                         .cancel = std::move(cancel),
                         .read_next = [this] { StartRead(&message_); },
                         .end = [this] { Finish(Outcome()); }},
        Now());
    TellProtocol(context_);
    if (agents_.Arrive(session_)) {
      StartRead(&message_);
    } else {
      End(ShuttingDown());
    }
  }

  // One reading at a time, and none while a message is being taken.
  void OnReadDone(bool ok) override {
    if (!ok) {
      End(absl::OkStatus());
    } else if (!joined_) {
      Join();
    } else if (message_.has_hello()) {
      End(absl::InvalidArgumentError("an agent says Hello once a stream"));
    } else {
      Take();
    }
  }
  void OnWriteDone(bool ok) override { session_->Written(ok); }
  void OnDone() override { delete this; }

 private:
  void Send(const v1::ServiceMessage* message) {
    const absl::Status sent =
        Guarded([] { return std::string("a message to an agent"); }, [&] { StartWrite(message); });
    if (sent.ok()) return;
    spdlog::error("event=agent_stream_failed error=\"{}\"", std::string(sent.message()));
    session_->Written(false);
  }

  void Take() {
    bool read_on = false;
    const absl::Status taken = Guarded([] { return std::string("a message of an agent"); },
                                       [&] { read_on = agents_.Take(session_, message_); });
    if (!taken.ok()) {
      End(taken);
    } else if (read_on) {
      StartRead(&message_);
    }
  }

  void Join() {
    if (!message_.has_hello()) {
      End(absl::InvalidArgumentError("an agent's first message must be Hello"));
      return;
    }
    const std::string who = "agent " + message_.hello().node_name();
    if (const absl::Status spoken = CheckProtocol(context_, who); !spoken.ok()) {
      End(spoken);
      return;
    }
    joined_ = true;  // before the next message can come
    const absl::Status joined =
        Guarded([&who] { return who; },
                [this] {
                  agents_.Join(session_, message_.hello(),
                               [this](const absl::Status& status) { End(status); });
                });
    if (!joined.ok()) End(joined);
  }

  // Called once: when nothing is being read.
  void End(const absl::Status& status) {
    status_ = status;
    agents_.Leave(session_);
    // A refusal must still reach the agent; an ended stream has nothing left to say.
    if (status.ok()) session_->Cancel();
    if (!status.ok() && !absl::IsUnavailable(status)) {
      spdlog::warn("event=agent_refused peer=\"{}\" error=\"{}\"", context_.peer(),
                   std::string(status.message()));
    }
    ended_(status);
    // Calls Finish, after which this may be gone.
    const std::shared_ptr<AgentSession> session = session_;
    session->Close();
  }

  grpc::Status Outcome() const { return ToGrpc(status_); }

  grpc::CallbackServerContext& context_;
  Agents& agents_;
  const std::function<void(const absl::Status&)> ended_;
  std::shared_ptr<AgentSession> session_;
  v1::AgentMessage message_;
  bool joined_ = false;
  absl::Status status_;
};

}  // namespace

AgentReactor* StartAgentStream(grpc::CallbackServerContext& context, std::function<void()> cancel,
                               Agents& agents, std::function<void(const absl::Status&)> ended) {
  return new AgentStream(context, std::move(cancel), agents, std::move(ended));
}

}  // namespace espalier
