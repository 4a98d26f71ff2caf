#include "tuner/server/grpc/grpc_service.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/grpcpp.h"
#include "spdlog/spdlog.h"
#include "tuner.grpc.pb.h"
#include "tuner/api/masking_tuner.h"
#include "tuner/api/operations.h"
#include "tuner/door/grpc_door.h"
#include "tuner/door/silent_connections.h"
#include "tuner/proto/grpc_status.h"
#include "tuner/proto/plain_messages.h"
#include "tuner/server/access/trial_tokens.h"
#include "tuner/server/grpc/agent_stream.h"
#include "tuner/server/grpc/agents.h"
#include "tuner/server/grpc/grpc_call.h"
#include "tuner/server/grpc/grpc_credentials.h"
#include "tuner/server/grpc/grpc_sessions.h"
#include "tuner/server/grpc/grpc_slots.h"
#include "tuner/server/grpc/protocol_check.h"
#include "tuner/server/loop/metrics.h"

namespace espalier {

namespace {

// A call that may wait long, which keeps no thread. One whose client cancels it, or goes away, is
// taken back.
class WaitingCall final : public grpc::ServerUnaryReactor {
 public:
  // Before the library is handed the call, and so before it says anything of it.
  void Keep(api::TakeBack take_back) { take_back_ = std::move(take_back); }

  void OnCancel() override {
    if (take_back_) take_back_();
  }
  void OnDone() override { delete this; }

 private:
  api::TakeBack take_back_;
};

// The rows of api::kOperations, and the agents' streams. Operations hold a thread while they are
// under way, but for those that may wait for a sampler; streams do not. What the code that protoc
// generates would do method by method is done for each row here.
class TunerService final : public grpc::Service {
 public:
  TunerService(const AccessControl& access, espalier::Tuner& tuner, Agents& agents,
               Metrics& metrics)
      : access_(access), tuner_(tuner), masking_(tuner), agents_(agents), metrics_(metrics) {
    api::ForEachOperation([this](const auto& row) { Add(row); });
    AddAgentStream();
  }

 private:
  template <typename Request, typename Response>
  void Add(const api::Operation<Request, Response>& row) {
    if (row.start != nullptr) return AddWaiting(row);
    const auto answer = [&row](TunerService* service, grpc::ServerContext* context,
                               const Request* request, Response* response) {
      return service->Answer(row, *context, *request, *response);
    };
    AddMethod(row.name, grpc::internal::RpcMethod::NORMAL_RPC,
              new grpc::internal::RpcMethodHandler<TunerService, Request, Response,
                                                   google::protobuf::MessageLite,
                                                   google::protobuf::MessageLite>(answer, this));
  }

  // As Add, for what may wait long: it keeps no thread.
  template <typename Request, typename Response>
  void AddWaiting(const api::Operation<Request, Response>& row) {
    const auto start = [this, &row](grpc::CallbackServerContext* context, const Request* request,
                                    Response* response) -> grpc::ServerUnaryReactor* {
      const auto since = std::chrono::steady_clock::now();
      auto* const reactor = new WaitingCall;  // which deletes itself
      if (const grpc::Status refusal = Refusal(row, *context, *request); !refusal.ok()) {
        reactor->Finish(refusal);
        return reactor;
      }
      reactor->Keep(
          row.start(TunerFor(*context), *request,
                    [this, &row, reactor, response, since](absl::StatusOr<Response> result) {
                      const absl::Status status = result.status();
                      if (status.ok()) *response = *std::move(result);
                      CountLatency(row.name, since);
                      reactor->Finish(Counted(row.name, status));
                    }));
      return reactor;
    };
    AddMethod(row.name, grpc::internal::RpcMethod::NORMAL_RPC, nullptr);
    MarkMethodCallback(static_cast<int>(names_.size()) - 1,
                       new grpc::internal::CallbackUnaryHandler<Request, Response>(start));
  }

  void AddAgentStream() {
    static constexpr char kMethod[] = "Agent";
    AddMethod(kMethod, grpc::internal::RpcMethod::BIDI_STREAMING, nullptr);
    const auto count = [this](const absl::Status& status) {
      metrics_.CountRequest("grpc", kMethod, absl::StatusCodeToString(status.code()));
    };
    const auto start = [this, count](grpc::CallbackServerContext* context) -> AgentReactor* {
      return StartAgentStream(
          *context, [context] { context->TryCancel(); }, agents_, count);
    };
    MarkMethodCallback(
        static_cast<int>(names_.size()) - 1,
        new grpc::internal::CallbackBidiHandler<v1::AgentMessage, v1::ServiceMessage>(start));
  }

  // gRPC keeps no copy of the name, and owns the handler.
  void AddMethod(const char* name, grpc::internal::RpcMethod::RpcType type,
                 grpc::internal::MethodHandler* handler) {
    names_.push_back(absl::StrCat("/", v1::Tuner::service_full_name(), "/", name));
    grpc::Service::AddMethod(
        new grpc::internal::RpcServiceMethod(names_.back().c_str(), type, handler));
  }

  template <typename Request, typename Response>
  grpc::Status Answer(const api::Operation<Request, Response>& row, grpc::ServerContext& context,
                      const Request& request, Response& response) {
    if (const grpc::Status refusal = Refusal(row, context, request); !refusal.ok()) return refusal;
    const absl::Cleanup waited = [this, &row] { waiting_ -= row.waits ? 1 : 0; };
    if (row.waits && ++waiting_ > kMaxGrpcWaits) {
      return Counted(row.name, absl::ResourceExhaustedError(absl::StrCat(
                                   "the tuner service is overloaded: ", kMaxGrpcWaits,
                                   " calls wait that may take long; try again later")));
    }
    const auto start = std::chrono::steady_clock::now();
    auto result = row.run(TunerFor(context), request);
    const absl::Status status = result.status();
    if (status.ok()) response = *std::move(result);
    CountLatency(row.name, start);
    return Counted(row.name, status);
  }

  // What the call is refused for before it is answered; OK: nothing.
  template <typename Request, typename Response>
  grpc::Status Refusal(const api::Operation<Request, Response>& row,
                       grpc::ServerContextBase& context, const Request& request) {
    TellProtocol(context);
    if (const absl::Status spoken = CheckProtocol(context, "this client"); !spoken.ok()) {
      return Counted(row.name, spoken);
    }
    if constexpr (requires { request.trial_id(); }) {
      const absl::Status own =
          CheckTrialToken(access_, TokenOf(context), request.trial_id(), tuner_);
      if (!own.ok()) return Counted(row.name, own);
    }
    return grpc::Status::OK;
  }

  espalier::Tuner& TunerFor(const grpc::ServerContextBase& context) {
    // Without a token only the service's own user has been admitted.
    if (access_.SeesSecrets({.own_user = true, .token = TokenOf(context)})) return tuner_;
    return masking_;
  }

  void CountLatency(const char* method, std::chrono::steady_clock::time_point since) {
    metrics_.CountLatency(
        "grpc", method,
        std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count());
  }

  grpc::Status Counted(const char* method, const absl::Status& status) {
    metrics_.CountRequest("grpc", method, absl::StatusCodeToString(status.code()));
    return ToGrpc(status);
  }

  const AccessControl& access_;
  espalier::Tuner& tuner_;
  MaskingTuner masking_;
  Agents& agents_;
  Metrics& metrics_;
  std::deque<std::string> names_;
  std::atomic<int> waiting_ = 0;
};

class GrpcServerImpl final : public GrpcServer {
 public:
  explicit GrpcServerImpl(GrpcPlace place)
      : access_(place.access),
        metrics_(place.metrics),
        service_(place.access, place.tuner, place.agents, place.metrics),
        services_(std::move(place.of_frontends)) {
    services_.push_back(MakeSlotsService(place.tuner, CountIn(metrics_, "grpc")));
    services_.push_back(MakeSessionsService(place.sessions, CountIn(metrics_, "grpc")));
  }
  ~GrpcServerImpl() override { Stop(); }

  absl::Status Listen(const ListenAddress& address, const Certificate& tls) {
    grpc::ServerBuilder builder;
    grpc::ResourceQuota quota("espalier");
    quota.SetMaxThreads(kMaxGrpcThreads);
    builder.SetResourceQuota(quota);
    builder.SetMaxReceiveMessageSize(kMaxMessage);
    builder.SetMaxSendMessageSize(kMaxMessage);
    TakePlainMessages(builder);
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
    // What comes through the door has shown a token, and is in the clear by then.
    others_ = builder.experimental().AddExternalConnectionAcceptor(
        type, GuardedCredentials({}, access_, /*own_user=*/false, refused));
    server_ = builder.BuildAndStart();
    if (!server_) return absl::InternalError("gRPC does not start; the log says why");
    GrpcDoorOptions door;
    door.certificate = tls;
    door.admits = [this](const CallHead& head) { return Admits(head); };
    door.let_in = [this](int socket, const std::string& said) { HandOver(*others_, socket, said); };
    door.refused = refused;
    ESPALIER_ASSIGN_OR_RETURN(door_, GrpcDoor::Open(std::move(door)));
    ESPALIER_RETURN_IF_ERROR(CheckFree(address));  // which says why not, and what to do
    ESPALIER_ASSIGN_OR_RETURN(
        listener_, SilentConnections::Listen(
                       address, [this](const Peer& peer) { return access_.Trusts(peer); },
                       [this](int socket, bool trusted) {
                         if (trusted) {
                           HandOver(*own_users_, socket, "");
                         } else {
                           door_->Take(socket);
                         }
                       }));
    return absl::OkStatus();
  }

  std::string address() const override { return listener_->address().text(); }

  void Stop() override {
    if (!server_) return;
    listener_.reset();
    if (door_ != nullptr) door_->Shut();
    server_->Shutdown(std::chrono::system_clock::now() +
                      std::chrono::milliseconds(static_cast<int>(kShutdownGrace_s * 1000)));
    server_->Wait();
    server_.reset();
    door_.reset();
  }

 private:
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

  // A good token lets its connection in, though it may be too small for this call: that, and what
  // else is called on it, is looked at call by call.
  absl::Status Admits(const CallHead& head) const {
    Shown shown;
    for (const std::string& authorization : head.authorizations) {
      if (shown.token.empty()) shown.token = BearerToken(authorization);
    }
    if (!shown.token.empty() && access_.Knows(shown.token)) return absl::OkStatus();
    return access_.Admit(head.path, shown);
  }

  static void HandOver(Acceptor& acceptor, int socket, const std::string& said) {
    Acceptor::NewConnectionParameters connection;
    connection.fd = socket;
    if (!said.empty()) {
      const grpc::Slice slice(said);
      connection.read_buffer = grpc::ByteBuffer(&slice, 1);
    }
    acceptor.HandleNewConnection(&connection);
  }

  const AccessControl& access_;
  Metrics& metrics_;
  TunerService service_;
  GrpcServices services_;  // slots', and the frontends'
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> own_users_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> others_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<GrpcDoor> door_;
  std::unique_ptr<SilentConnections> listener_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(GrpcPlace place) {
  const ListenAddress address = place.address;
  const Certificate tls = place.tls;
  auto server = std::make_unique<GrpcServerImpl>(std::move(place));
  ESPALIER_RETURN_IF_ERROR(server->Listen(address, tls));
  return server;
}

}  // namespace espalier
