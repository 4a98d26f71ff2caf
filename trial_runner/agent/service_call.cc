#include "trial_runner/agent/service_call.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "base/protocol.h"
#include "tuner.grpc.pb.h"
#include "tuner/credentials/access_token.h"
#include "tuner/credentials/pinned_certificate.h"
#include "tuner/proto/grpc_status.h"

namespace espalier {
namespace {

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const std::string& address,
                                                           const std::string& token,
                                                           const std::string& tls_roots) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // a proxy for the web is none for the tuner
  std::string roots = tls_roots;
  if (const std::string pin = PinOf(token); roots.empty() && !pin.empty()) {
    ESPALIER_ASSIGN_OR_RETURN(const PinnedService pinned, PinService(address, pin));
    roots = pinned.certificate;
    arguments.SetSslTargetNameOverride(pinned.name);
  }
  const auto credentials =
      roots.empty() ? grpc::InsecureChannelCredentials() : grpc::SslCredentials({roots, "", ""});
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

class GrpcServiceCall final : public ServiceCall {
 public:
  GrpcServiceCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& token)
      : stub_(v1::Tuner::NewStub(channel)) {
    context_.AddMetadata(kProtocolHeader, ProtocolText());
    if (!token.empty()) context_.AddMetadata("authorization", "Bearer " + token);
  }

  void Open() override { stream_ = stub_->Agent(&context_); }
  bool Read(v1::ServiceMessage* message) override { return stream_->Read(message); }
  bool Write(const v1::AgentMessage& message) override { return stream_->Write(message); }
  std::string peer() const override { return context_.peer(); }
  void Cancel() override { context_.TryCancel(); }
  absl::Status Finish() override { return FromGrpc(stream_->Finish()); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<v1::Tuner::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::ServiceMessage>> stream_;
};

}  // namespace

ServiceDialer DialByGrpc(std::string address, std::string token, std::string tls_roots) {
  return [address = std::move(address), token = std::move(token),
          roots = std::move(tls_roots)]() -> absl::StatusOr<std::unique_ptr<ServiceCall>> {
    ESPALIER_ASSIGN_OR_RETURN(const auto channel, MakeChannel(address, token, roots));
    return std::make_unique<GrpcServiceCall>(channel, token);
  };
}

}  // namespace espalier
