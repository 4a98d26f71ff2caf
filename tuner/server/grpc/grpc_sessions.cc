#include "tuner/server/grpc/grpc_sessions.h"

#include <string>
#include <utility>

#include "sessions.grpc.pb.h"
#include "tuner/server/grpc/grpc_credentials.h"

namespace espalier {

namespace {

class SessionsService final : public v1::Sessions::CallbackService {
 public:
  SessionsService(BrowserSessions* sessions, Answered answered)
      : sessions_(sessions), answered_(std::move(answered)) {}

  grpc::ServerUnaryReactor* CreateLoginCode(grpc::CallbackServerContext* context,
                                            const v1::CreateLoginCodeRequest*,
                                            v1::LoginCode* response) override {
    const GrpcCall call{"CreateLoginCode", context->DefaultReactor()};
    call.Finish(Create(TokenOf(*context), *response), answered_);
    return call.reactor;
  }

 private:
  // The token has been admitted.
  absl::Status Create(const std::string& token, v1::LoginCode& response) const {
    if (sessions_ == nullptr) return absl::FailedPreconditionError("the service has no page");
    if (token.empty()) {
      return absl::FailedPreconditionError(
          "a code that begins a session stands for the token of the call, which shows none");
    }
    response.set_code(sessions_->NewCode(token));
    response.set_ends_in_s(kLoginCode_s);
    return absl::OkStatus();
  }

  BrowserSessions* const sessions_;
  const Answered answered_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeSessionsService(BrowserSessions* sessions, Answered answered) {
  return std::make_unique<SessionsService>(sessions, std::move(answered));
}

}  // namespace espalier
