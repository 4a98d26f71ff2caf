#include "tuner/server/grpc_service.h"

#include <chrono>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/optuna/storage_service.h"
#include "grpcpp/grpcpp.h"
#include "spdlog/spdlog.h"
#include "tuner.grpc.pb.h"
#include "tuner/api/operations.h"
#include "tuner/api/trial_operations.h"
#include "tuner/api/trial_output.h"
#include "tuner/server/grpc_slots.h"
#include "tuner/server/token.h"

namespace espalier {

namespace {

grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

bool HasToken(const grpc::ServerContextBase& context, const std::string& token) {
  const auto [begin, end] = context.client_metadata().equal_range("authorization");
  for (auto it = begin; it != end; ++it) {
    if (ShowsToken(std::string_view(it->second.data(), it->second.size()), token)) return true;
  }
  return false;
}

class TunerService final : public v1::Tuner::Service {
 public:
  TunerService(std::string token, espalier::Tuner& tuner, Agents& agents, Metrics& metrics)
      : token_(std::move(token)), tuner_(tuner), agents_(agents), metrics_(metrics) {}

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

  grpc::Status Agent(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::ServiceMessage, v1::AgentMessage>* stream) override {
    const auto session = std::make_shared<AgentSession>(
        [stream](const v1::ServiceMessage& message) { return stream->Write(message); },
        [context] { context->TryCancel(); }, Now());
    absl::Status status = absl::UnavailableError("the tuner service is shutting down");
    if (agents_.Arrive(session)) {
      status = Converse(*context, *stream, session);
      agents_.Leave(session);
    }
    // A refusal must still reach the agent; an ended stream has nothing left to say.
    if (status.ok()) session->Cancel();
    session->Close();
    if (!status.ok() && !absl::IsUnavailable(status)) {
      spdlog::warn("event=agent_refused peer=\"{}\" error=\"{}\"", context->peer(),
                   std::string(status.message()));
    }
    return Counted("Agent", status);
  }

 private:
  template <typename Operation, typename Request, typename Response>
  grpc::Status Unary(const char* method, const grpc::ServerContext& context, Operation operation,
                     const Request& request, Response& response) {
    if (!MayEnter(context)) return Counted(method, optuna_storage::NoToken());
    const auto start = std::chrono::steady_clock::now();
    auto result = operation(tuner_, request);
    if (result.ok()) response = *std::move(result);
    metrics_.CountLatency(
        "grpc", method,
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    return Counted(method, result.status());
  }

  // From Hello to the stream's end.
  absl::Status Converse(const grpc::ServerContext& context,
                        grpc::ServerReaderWriter<v1::ServiceMessage, v1::AgentMessage>& stream,
                        const std::shared_ptr<AgentSession>& session) {
    v1::AgentMessage message;
    if (!stream.Read(&message)) return absl::OkStatus();
    if (!message.has_hello()) {
      return absl::InvalidArgumentError("an agent's first message must be Hello");
    }
    if (!MayEnter(context) && !SameToken(message.hello().token(), token_))
      return optuna_storage::NoToken();
    ESPALIER_RETURN_IF_ERROR(agents_.Join(session, message.hello()));
    while (stream.Read(&message)) {
      if (message.has_hello()) {
        return absl::InvalidArgumentError("an agent says Hello once a stream");
      }
      agents_.Take(session, message);
    }
    return absl::OkStatus();
  }

  bool MayEnter(const grpc::ServerContext& context) const {
    return token_.empty() || HasToken(context, token_);
  }

  grpc::Status Counted(const char* method, const absl::Status& status) {
    metrics_.CountRequest("grpc", method, absl::StatusCodeToString(status.code()));
    return ToGrpc(status);
  }

  const std::string token_;
  espalier::Tuner& tuner_;
  Agents& agents_;
  Metrics& metrics_;
};

optuna_storage::Gate GateOf(const std::string& token, Metrics& metrics, const char* door) {
  return {[token](const grpc::CallbackServerContext& context) {
            return token.empty() || HasToken(context, token);
          },
          [&metrics, door](const char* method, const absl::Status& status, double seconds) {
            metrics.CountRequest(door, method, absl::StatusCodeToString(status.code()));
            metrics.CountLatency(door, method, seconds);
          }};
}

class GrpcServerImpl final : public GrpcServer {
 public:
  GrpcServerImpl(const std::string& token, Tuner& tuner, Agents& agents, Metrics& metrics)
      : service_(token, tuner, agents, metrics),
        optuna_(optuna_storage::MakeStorageService(tuner, GateOf(token, metrics, "optuna"))),
        slots_(MakeSlotsService(tuner, GateOf(token, metrics, "grpc"))) {}
  ~GrpcServerImpl() override { Stop(); }

  absl::Status Listen(ListenAddress address, const TlsPair& tls) {
    // gRPC would log at length and keep the reason to itself.
    ESPALIER_RETURN_IF_ERROR(CheckFree(address));
    grpc::ServerBuilder builder;
    grpc::ResourceQuota quota("espalier");
    quota.SetMaxThreads(kMaxGrpcThreads);
    builder.SetResourceQuota(quota);
    builder.SetMaxReceiveMessageSize(kMaxMessage);
    builder.SetMaxSendMessageSize(kMaxMessage);
    builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
    builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
    builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 2);
    // Two services on one port would each get some of the calls.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.RegisterService(&service_);
    builder.RegisterService(optuna_.get());
    builder.RegisterService(slots_.get());
    int port = 0;
    builder.AddListeningPort(address.text(), Credentials(tls), &port);
    server_ = builder.BuildAndStart();
    if (!server_ || port == 0) {
      return absl::FailedPreconditionError(absl::StrCat("cannot listen on ", address.text(),
                                                        ": gRPC refused it; choose another port"));
    }
    address.port = port;
    address_ = address.text();
    return absl::OkStatus();
  }

  std::string address() const override { return address_; }

  void Stop() override {
    if (!server_) return;
    server_->Shutdown(std::chrono::system_clock::now() +
                      std::chrono::milliseconds(static_cast<int>(kShutdownGrace_s * 1000)));
    server_->Wait();
    server_.reset();
  }

 private:
  static std::shared_ptr<grpc::ServerCredentials> Credentials(const TlsPair& tls) {
    if (tls.certificate.empty()) return grpc::InsecureServerCredentials();
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back({tls.key, tls.certificate});
    return grpc::SslServerCredentials(options);
  }

  TunerService service_;
  const std::unique_ptr<grpc::Service> optuna_;
  const std::unique_ptr<grpc::Service> slots_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const ListenAddress& address,
                                                              const std::string& token,
                                                              const TlsPair& tls, Tuner& tuner,
                                                              Agents& agents, Metrics& metrics) {
  auto server = std::make_unique<GrpcServerImpl>(token, tuner, agents, metrics);
  ESPALIER_RETURN_IF_ERROR(server->Listen(address, tls));
  return server;
}

}  // namespace espalier
