#include "tuner/server/grpc/grpc_service.h"

#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/grpcpp.h"
#include "spdlog/spdlog.h"
#include "tuner.grpc.pb.h"
#include "tuner/api/operations.h"
#include "tuner/api/token_operations.h"
#include "tuner/api/trial_operations.h"
#include "tuner/api/trial_output.h"
#include "tuner/proto/grpc_status.h"
#include "tuner/server/access/silent_connections.h"
#include "tuner/server/access/trial_tokens.h"
#include "tuner/server/grpc/agent_stream.h"
#include "tuner/server/grpc/grpc_call.h"
#include "tuner/server/grpc/grpc_credentials.h"
#include "tuner/server/grpc/grpc_slots.h"
#include "tuner/server/grpc/protocol_check.h"

namespace espalier {

namespace {

std::string TokenOf(const grpc::ServerContextBase& context) {
  const auto [begin, end] = context.client_metadata().equal_range("authorization");
  for (auto it = begin; it != end; ++it) {
    std::string token = BearerToken({it->second.data(), it->second.size()});
    if (!token.empty()) return token;
  }
  return "";
}

// All methods hold a thread while they are under way, but for the agents' streams.
class TunerService final : public v1::Tuner::WithCallbackMethod_Agent<v1::Tuner::Service> {
 public:
  TunerService(const AccessControl& access, std::string certificate_hash, espalier::Tuner& tuner,
               Agents& agents, Metrics& metrics)
      : access_(access),
        certificate_hash_(std::move(certificate_hash)),
        tuner_(tuner),
        agents_(agents),
        metrics_(metrics) {}

  grpc::Status CreateStudy(grpc::ServerContext* context, const v1::CreateStudyRequest* request,
                           v1::Study* response) override {
    return Unary("CreateStudy", *context, api::CreateStudy, *request, *response);
  }
  grpc::Status ListStudies(grpc::ServerContext* context, const v1::ListStudiesRequest* request,
                           v1::ListStudiesResponse* response) override {
    return Unary("ListStudies", *context, api::ListStudies, *request, *response);
  }
  grpc::Status GetStudy(grpc::ServerContext* context, const v1::GetStudyRequest* request,
                        v1::StudyDetails* response) override {
    return Unary("GetStudy", *context, api::GetStudy, *request, *response);
  }
  grpc::Status StopStudy(grpc::ServerContext* context, const v1::StudyName* request,
                         v1::Study* response) override {
    return Unary("StopStudy", *context, api::StopStudy, *request, *response);
  }
  grpc::Status ResumeStudy(grpc::ServerContext* context, const v1::ResumeStudyRequest* request,
                           v1::Study* response) override {
    return Unary("ResumeStudy", *context, api::ResumeStudy, *request, *response);
  }
  grpc::Status DeleteStudy(grpc::ServerContext* context, const v1::StudyName* request,
                           v1::Study* response) override {
    return Unary("DeleteStudy", *context, api::DeleteStudy, *request, *response);
  }
  grpc::Status Tell(grpc::ServerContext* context, const v1::TellRequest* request,
                    v1::TellResponse* response) override {
    return Unary("Tell", *context, api::Tell, *request, *response);
  }
  grpc::Status Ask(grpc::ServerContext* context, const v1::AskRequest* request,
                   v1::TrialRecord* response) override {
    return Unary("Ask", *context, api::Ask, *request, *response);
  }
  grpc::Status Enqueue(grpc::ServerContext* context, const v1::EnqueueRequest* request,
                       v1::TrialRecord* response) override {
    return Unary("Enqueue", *context, api::Enqueue, *request, *response);
  }
  grpc::Status Report(grpc::ServerContext* context, const v1::ReportRequest* request,
                      v1::Verdict* response) override {
    return Unary("Report", *context, api::Report, *request, *response);
  }
  grpc::Status ShouldPrune(grpc::ServerContext* context, const v1::TrialId* request,
                           v1::Verdict* response) override {
    return Unary("ShouldPrune", *context, api::ShouldPrune, *request, *response);
  }
  grpc::Status SetAttributes(grpc::ServerContext* context, const v1::SetAttributesRequest* request,
                             v1::TrialRecord* response) override {
    return Unary("SetAttributes", *context, api::SetAttributes, *request, *response);
  }
  grpc::Status GetTrial(grpc::ServerContext* context, const v1::TrialId* request,
                        v1::TrialRecord* response) override {
    return Unary("GetTrial", *context, api::GetTrial, *request, *response);
  }
  grpc::Status GetBestTrial(grpc::ServerContext* context, const v1::StudyName* request,
                            v1::TrialRecord* response) override {
    return Unary("GetBestTrial", *context, api::GetBestTrial, *request, *response);
  }
  grpc::Status CancelTrial(grpc::ServerContext* context, const v1::CancelTrialRequest* request,
                           v1::TrialRecord* response) override {
    return Unary("CancelTrial", *context, api::CancelTrial, *request, *response);
  }
  grpc::Status GetTrialOutput(grpc::ServerContext* context, const v1::TrialOutputRequest* request,
                              v1::TrialOutput* response) override {
    return Unary("GetTrialOutput", *context, api::GetTrialOutput, *request, *response);
  }
  grpc::Status PinTrial(grpc::ServerContext* context, const v1::PinTrialRequest* request,
                        v1::Trial* response) override {
    return Unary("PinTrial", *context, api::PinTrial, *request, *response);
  }
  grpc::Status DrainNode(grpc::ServerContext* context, const v1::DrainNodeRequest* request,
                         v1::Node* response) override {
    return Unary("DrainNode", *context, api::DrainNode, *request, *response);
  }
  grpc::Status GetPool(grpc::ServerContext* context, const v1::GetPoolRequest* request,
                       v1::Pool* response) override {
    return Unary("GetPool", *context, api::GetPool, *request, *response);
  }

  grpc::Status SetPoolPolicy(grpc::ServerContext* context, const v1::SetPoolPolicyRequest* request,
                             v1::Pool* response) override {
    return Unary("SetPoolPolicy", *context, api::SetPoolPolicy, *request, *response);
  }

  grpc::Status CreateToken(grpc::ServerContext* context, const v1::CreateTokenRequest* request,
                           v1::Token* response) override {
    const auto create = [this](espalier::Tuner& tuner, const v1::CreateTokenRequest& wanted) {
      return api::CreateToken(tuner, wanted, certificate_hash_);
    };
    return Unary("CreateToken", *context, create, *request, *response);
  }
  grpc::Status ListTokens(grpc::ServerContext* context, const v1::ListTokensRequest* request,
                          v1::ListTokensResponse* response) override {
    return Unary("ListTokens", *context, api::ListTokens, *request, *response);
  }
  grpc::Status RemoveToken(grpc::ServerContext* context, const v1::RemoveTokenRequest* request,
                           v1::Token* response) override {
    return Unary("RemoveToken", *context, api::RemoveToken, *request, *response);
  }

  grpc::ServerBidiReactor<v1::AgentMessage, v1::ServiceMessage>* Agent(
      grpc::CallbackServerContext* context) override {
    return StartAgentStream(*context, agents_, [this](const absl::Status& status) {
      metrics_.CountRequest("grpc", "Agent", absl::StatusCodeToString(status.code()));
    });
  }

 private:
  template <typename Operation, typename Request, typename Response>
  grpc::Status Unary(const char* method, grpc::ServerContext& context, Operation operation,
                     const Request& request, Response& response) {
    TellProtocol(context);
    if (const absl::Status spoken = CheckProtocol(context, "this client"); !spoken.ok()) {
      return Counted(method, spoken);
    }
    if constexpr (requires { request.trial_id(); }) {
      const absl::Status own =
          CheckTrialToken(access_, TokenOf(context), request.trial_id(), tuner_);
      if (!own.ok()) return Counted(method, own);
    }
    const auto start = std::chrono::steady_clock::now();
    auto result = operation(tuner_, request);
    const absl::Status status = result.status();
    if (status.ok()) response = *std::move(result);
    metrics_.CountLatency(
        "grpc", method,
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    return Counted(method, status);
  }

  grpc::Status Counted(const char* method, const absl::Status& status) {
    metrics_.CountRequest("grpc", method, absl::StatusCodeToString(status.code()));
    return ToGrpc(status);
  }

  const AccessControl& access_;
  const std::string certificate_hash_;
  espalier::Tuner& tuner_;
  Agents& agents_;
  Metrics& metrics_;
};

class GrpcServerImpl final : public GrpcServer {
 public:
  GrpcServerImpl(const AccessControl& access, const std::string& certificate_hash, Tuner& tuner,
                 Agents& agents, Metrics& metrics, GrpcServices services)
      : access_(access),
        metrics_(metrics),
        service_(access, certificate_hash, tuner, agents, metrics),
        services_(std::move(services)) {
    services_.push_back(MakeSlotsService(tuner, CountIn(metrics, "grpc")));
  }
  ~GrpcServerImpl() override { Stop(); }

  absl::Status Listen(const ListenAddress& address, const TlsPair& tls) {
    grpc::ServerBuilder builder;
    grpc::ResourceQuota quota("espalier");
    quota.SetMaxThreads(kMaxGrpcThreads);
    builder.SetResourceQuota(quota);
    builder.SetMaxReceiveMessageSize(kMaxMessage);
    builder.SetMaxSendMessageSize(kMaxMessage);
    builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
    builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
    builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 2);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshake_s * 1000);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kMaxGrpcIdle_s * 1000);
    builder.RegisterService(&service_);
    for (const auto& service : services_) builder.RegisterService(service.get());
    const auto type = grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD;
    const auto refused = [this](const absl::Status& status) {
      metrics_.CountRequest("grpc", "refused", absl::StatusCodeToString(status.code()));
    };
    own_users_ = builder.experimental().AddExternalConnectionAcceptor(
        type, GuardedCredentials(tls, access_, /*own_user=*/true, refused));
    others_ = builder.experimental().AddExternalConnectionAcceptor(
        type, GuardedCredentials(tls, access_, /*own_user=*/false, refused));
    server_ = builder.BuildAndStart();
    if (!server_) return absl::InternalError("gRPC does not start; the log says why");
    ESPALIER_ASSIGN_OR_RETURN(
        listener_,
        SilentConnections::Listen(
            address, [this](const Peer& peer) { return access_.Trusts(peer); },
            [this](int socket, bool trusted) {
              grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
              connection.fd = socket;
              (trusted ? own_users_ : others_)->HandleNewConnection(&connection);
            }));
    return absl::OkStatus();
  }

  std::string address() const override { return listener_->address().text(); }

  void Stop() override {
    if (!server_) return;
    listener_.reset();
    server_->Shutdown(std::chrono::system_clock::now() +
                      std::chrono::milliseconds(static_cast<int>(kShutdownGrace_s * 1000)));
    server_->Wait();
    server_.reset();
  }

 private:
  const AccessControl& access_;
  Metrics& metrics_;
  TunerService service_;
  GrpcServices services_;  // slots', and the frontends'
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> own_users_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> others_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<SilentConnections> listener_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(
    const ListenAddress& address, const TlsPair& tls, const AccessControl& access,
    const std::string& certificate_hash, Tuner& tuner, Agents& agents, Metrics& metrics,
    GrpcServices of_frontends) {
  auto server = std::make_unique<GrpcServerImpl>(access, certificate_hash, tuner, agents, metrics,
                                                 std::move(of_frontends));
  ESPALIER_RETURN_IF_ERROR(server->Listen(address, tls));
  return server;
}

}  // namespace espalier
