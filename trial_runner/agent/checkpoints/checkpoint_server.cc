#include "trial_runner/agent/checkpoints/checkpoint_server.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transfer.grpc.pb.h"
#include "tuner/credentials/certificate.h"
#include "tuner/door/grpc_door.h"
#include "tuner/door/silent_connections.h"
#include "tuner/proto/grpc_status.h"
#include "tuner/proto/plain_messages.h"

namespace espalier {
namespace {

constexpr int kThreads = kMaxCheckpointReaders + 4;
constexpr int kMaxRequestBytes = 64 << 10;

class GrpcCheckpointServer final : public CheckpointServer,
                                   private v1::CheckpointTransfer::Service {
 public:
  GrpcCheckpointServer(Certificate certificate, FolderOf folder_of)
      : certificate_(std::move(certificate)), readers_(std::move(folder_of)) {}

  ~GrpcCheckpointServer() override {
    listener_.reset();
    if (door_ != nullptr) door_->Shut();
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  absl::Status Listen(const std::string& host, int port) {
    grpc::ResourceQuota quota;
    quota.SetMaxThreads(kThreads);
    grpc::ServerBuilder builder;
    acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        grpc::InsecureServerCredentials());
    builder.SetResourceQuota(quota);
    builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
    TakePlainMessages(builder);
    builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
    builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return absl::InternalError("gRPC does not start");
    GrpcDoorOptions door;
    door.certificate = certificate_;
    door.admits = [this](const CallHead& head) { return Knows(head); };
    door.let_in = [this](int socket, const std::string& said) { HandOver(socket, said); };
    ESPALIER_ASSIGN_OR_RETURN(door_, GrpcDoor::Open(std::move(door)));
    ESPALIER_ASSIGN_OR_RETURN(listener_,
                              SilentConnections::Listen(
                                  {WithoutBrackets(host), port}, [](const Peer&) { return false; },
                                  [this](int socket, bool) { door_->Take(socket); }));
    address_ = listener_->address().text();
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }
  const std::string& certificate() const override { return certificate_.pem; }

  void Allow(std::string ticket, CheckpointName what) override {
    readers_.Allow(std::move(ticket), std::move(what));
  }
  bool busy() override { return readers_.busy(); }

 private:
  static std::string WithoutBrackets(const std::string& host) {
    return host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
  }

  // Any ticket lets a connection in. What it is good for is looked at when the request has come.
  absl::Status Knows(const CallHead& head) {
    for (const std::string& authorization : head.authorizations) {
      if (readers_.Knows(authorization)) return absl::OkStatus();
    }
    return CheckpointReaders::NotGood();
  }

  void HandOver(int socket, const std::string& said) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = socket;
    const grpc::Slice slice(said);
    connection.read_buffer = grpc::ByteBuffer(&slice, 1);
    acceptor_->HandleNewConnection(&connection);
  }

  grpc::Status Read(grpc::ServerContext* context, const v1::ReadCheckpoint* request,
                    grpc::ServerWriter<v1::CheckpointPiece>* writer) override {
    const auto found = context->client_metadata().find("authorization");
    std::string_view shown;
    if (found != context->client_metadata().end()) {
      shown = {found->second.data(), found->second.size()};
    }
    return ToGrpc(readers_.Read(shown, *request, [&](const v1::CheckpointPiece& piece) {
      return !context->IsCancelled() && writer->Write(piece);
    }));
  }

  const Certificate certificate_;
  CheckpointReaders readers_;
  std::string address_;
  std::unique_ptr<GrpcDoor> door_;  // outlives the server
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<SilentConnections> listener_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointServer>> CheckpointServer::Open(
    const std::string& host, int first_port, int last_port, const FolderOf& folder_of) {
  ESPALIER_ASSIGN_OR_RETURN(Certificate certificate, MakeCertificate());
  for (int port = first_port; port <= std::max(first_port, last_port); ++port) {
    auto server = std::make_unique<GrpcCheckpointServer>(certificate, folder_of);
    if (server->Listen(host, port).ok()) return server;
  }
  return absl::UnavailableError(absl::StrCat(
      "cannot listen on ", host, ", port ", first_port,
      last_port > first_port ? absl::StrCat(" to ", last_port) : "",
      ", for agents that fetch checkpoints: is it an address of this machine with a free port?"));
}

}  // namespace espalier
