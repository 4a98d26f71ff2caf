#include "trial_runner/agent/checkpoints/checkpoint_server.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transfer.grpc.pb.h"
#include "tuner/credentials/certificate.h"
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
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  bool Listen(const std::string& host, int port) {
    const bool bare_v6 = host.find(':') != std::string::npos && !host.starts_with('[');
    const std::string of_host = bare_v6 ? absl::StrCat("[", host, "]") : host;
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back({certificate_.key_pem, certificate_.pem});
    grpc::ResourceQuota quota;
    quota.SetMaxThreads(kThreads);
    grpc::ServerBuilder builder;
    int bound = 0;
    builder.AddListeningPort(absl::StrCat(of_host, ":", port), grpc::SslServerCredentials(options),
                             &bound);
    builder.SetResourceQuota(quota);
    builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
    TakePlainMessages(builder);
    builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
    builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || bound == 0) return false;
    address_ = absl::StrCat(of_host, ":", bound);
    return true;
  }

  const std::string& address() const override { return address_; }
  const std::string& certificate() const override { return certificate_.pem; }

  void Allow(std::string ticket, CheckpointName what) override {
    readers_.Allow(std::move(ticket), std::move(what));
  }
  bool busy() override { return readers_.busy(); }

 private:
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
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointServer>> CheckpointServer::Open(
    const std::string& host, int first_port, int last_port, const FolderOf& folder_of) {
  ESPALIER_ASSIGN_OR_RETURN(Certificate certificate, MakeCertificate());
  for (int port = first_port; port <= std::max(first_port, last_port); ++port) {
    auto server = std::make_unique<GrpcCheckpointServer>(certificate, folder_of);
    if (server->Listen(host, port)) return server;
  }
  return absl::UnavailableError(absl::StrCat(
      "cannot listen on ", host, ", port ", first_port,
      last_port > first_port ? absl::StrCat(" to ", last_port) : "",
      ", for agents that fetch checkpoints: is it an address of this machine with a free port?"));
}

}  // namespace espalier
