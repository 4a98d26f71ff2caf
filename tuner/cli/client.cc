#include "tuner/cli/client.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/host_port.h"
#include "base/protocol.h"
#include "sessions.grpc.pb.h"
#include "tuner.grpc.pb.h"
#include "tuner/credentials/access_token.h"
#include "tuner/credentials/pinned_certificate.h"
#include "tuner/proto/grpc_status.h"

namespace espalier {

namespace {

grpc::ChannelArguments ClientChannelArguments() {
  grpc::ChannelArguments arguments;
  // A study with thousands of trials and their curves is more than the default of 4 MiB.
  arguments.SetMaxReceiveMessageSize(-1);
  // Also how long one attempt to connect may take. In a burst of newcomers a service's kernel drops
  // some of them and tries again after 1, 3 and 7 s.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 10'000);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // A proxy for the web is none for the tuner.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return arguments;
}

// `what` names the address.
absl::Status NobodyAnswers(const std::string& what) {
  return absl::UnavailableError(what +
                                ": start one with `tuner serve`, or name another with "
                                "--service HOST:PORT or --dir DIR");
}

absl::Status NobodyAnswers(const std::string& address, const std::string& why) {
  return NobodyAnswers("no tuner service answers at \"" + address + "\" (" + why + ")");
}

// gRPC gives the status of a web server's answer the code that is nearest.
bool CameFromAProxy(const grpc::Status& status) {
  return absl::StrContains(status.error_message(), "Received http2 header with status");
}

// Before a service is asked once more.
constexpr auto kAgainAfter = std::chrono::milliseconds(200);

using SystemClock = std::chrono::system_clock;

SystemClock::time_point EndOfCall(const ClientOptions& options) {
  return SystemClock::now() +
         std::chrono::microseconds(static_cast<std::int64_t>(options.timeout_s * 1e6));
}

// Waits for the service where the options say so.
absl::StatusOr<PinnedService> AwaitPinned(const ClientOptions& options, const std::string& pin) {
  const auto ends = EndOfCall(options);
  while (true) {
    const std::chrono::duration<double> left = ends - SystemClock::now();
    absl::StatusOr<PinnedService> pinned = PinService(options.address, pin, left.count());
    const bool over = !options.wait_for_ready || SystemClock::now() + kAgainAfter >= ends;
    if (!absl::IsUnavailable(pinned.status()) || over) return pinned;
    std::this_thread::sleep_for(kAgainAfter);
  }
}

}  // namespace

class Client::Connection {
 public:
  explicit Connection(ClientOptions options) : options_(std::move(options)) {}

  absl::Status Call(const std::string& method, bool counts_once,
                    const google::protobuf::MessageLite& request,
                    google::protobuf::MessageLite& response);

  const std::string& address() const { return options_.address; }
  void LeaveCutOffCalls() { again_ = false; }

 private:
  // Whether a call that has failed may be made once more. No call is cancelled here: it is what the
  // service has dropped as it ended.
  bool MayRepeat(const grpc::Status& failed, bool counts_once) const;
  // Known by its certificate's hash, which it has shown before the first call.
  bool pinned() const { return options_.tls_roots.empty() && !PinOf(options_.token).empty(); }
  grpc::Status CallOnce(const std::string& method, SystemClock::time_point ends,
                        bool wait_for_ready, const google::protobuf::MessageLite& request,
                        google::protobuf::MessageLite& response);

  // Called before the first call: asks a service that is known by its token's hash for its
  // certificate.
  absl::Status Connect();

  // What to make of a call that failed.
  absl::Status ErrorOf(const grpc::Status& status);

  ClientOptions options_;
  std::atomic<bool> answered_ = false;  // whether the service has answered a call
  std::atomic<bool> again_ = true;      // calls that are cut off are made again
  std::mutex connecting_;
  std::shared_ptr<grpc::Channel> channel_;
};

absl::Status Client::Connection::Connect() {
  const std::lock_guard lock(connecting_);
  if (channel_ != nullptr) return absl::OkStatus();
  grpc::ChannelArguments arguments = ClientChannelArguments();
  std::string roots = options_.tls_roots;
  if (const std::string pin = PinOf(options_.token); roots.empty() && !pin.empty()) {
    const absl::StatusOr<PinnedService> pinned = AwaitPinned(options_, pin);
    if (absl::IsUnavailable(pinned.status())) {
      return NobodyAnswers(std::string(pinned.status().message()));
    }
    if (!pinned.ok()) return pinned.status();
    roots = pinned->certificate;
    arguments.SetSslTargetNameOverride(pinned->name);
  }
  const auto credentials =
      roots.empty() ? grpc::InsecureChannelCredentials() : grpc::SslCredentials({roots, "", ""});
  channel_ = grpc::CreateCustomChannel(options_.address, credentials, arguments);
  return absl::OkStatus();
}

absl::Status Client::Connection::Call(const std::string& method, bool counts_once,
                                      const google::protobuf::MessageLite& request,
                                      google::protobuf::MessageLite& response) {
  ESPALIER_RETURN_IF_ERROR(Connect());
  const auto ends = EndOfCall(options_);
  const grpc::Status first = CallOnce(method, ends, options_.wait_for_ready, request, response);
  grpc::Status status = first;
  while (MayRepeat(status, counts_once) && SystemClock::now() + kAgainAfter < ends) {
    std::this_thread::sleep_for(kAgainAfter);
    response.Clear();
    status = CallOnce(method, ends, /*wait_for_ready=*/true, request, response);
  }
  if (!status.ok()) {
    const bool in_vain = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
    return ErrorOf(in_vain ? first : status);
  }
  answered_ = true;
  return absl::OkStatus();
}

bool Client::Connection::MayRepeat(const grpc::Status& failed, bool counts_once) const {
  if (!again_) return false;
  if (failed.error_code() == grpc::StatusCode::CANCELLED) return counts_once;
  if (failed.error_code() != grpc::StatusCode::UNAVAILABLE || CameFromAProxy(failed)) return false;
  switch (LossOf(failed.error_message())) {
    case CallLoss::kNotConnected:
      return false;
    case CallLoss::kBrokenOff:
      return pinned();  // of others it may be what they do, whose language is another
    case CallLoss::kUnanswered:
      return counts_once;
  }
  return false;
}

grpc::Status Client::Connection::CallOnce(const std::string& method, SystemClock::time_point ends,
                                          bool wait_for_ready,
                                          const google::protobuf::MessageLite& request,
                                          google::protobuf::MessageLite& response) {
  grpc::ClientContext context;
  context.set_deadline(ends);
  context.set_wait_for_ready(wait_for_ready);
  context.AddMetadata(kProtocolHeader, ProtocolText());
  if (!options_.token.empty()) {
    context.AddMetadata("authorization", "Bearer " + options_.token);
  }
  using google::protobuf::MessageLite;
  const grpc::internal::RpcMethod rpc(method.c_str(), grpc::internal::RpcMethod::NORMAL_RPC,
                                      channel_);
  return grpc::internal::BlockingUnaryCall<MessageLite, MessageLite, MessageLite, MessageLite>(
      channel_.get(), rpc, &context, request, &response);
}

absl::Status Client::Connection::ErrorOf(const grpc::Status& status) {
  // No call is cancelled here: the service has dropped this one as it ended.
  const bool dropped = status.error_code() == grpc::StatusCode::CANCELLED;
  const bool by_a_proxy = CameFromAProxy(status);
  const bool unanswered = dropped || by_a_proxy ||
                          status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                          status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  if (!unanswered) {
    answered_ = true;
    return FromGrpc(status);
  }
  if (dropped || answered_) {
    return absl::UnavailableError("the service at \"" + options_.address + "\" went away (" +
                                  status.error_message() + ")");
  }
  const std::string http1 = Http1At(options_.address, status.error_message());
  if (!http1.empty()) return absl::UnavailableError(http1);
  if (by_a_proxy) {
    return absl::UnavailableError("\"" + options_.address +
                                  "\" is a web server or a proxy that knows no tuner service (" +
                                  status.error_message() + ")");
  }
  const bool in_the_clear = options_.tls_roots.empty() && PinOf(options_.token).empty();
  if (in_the_clear && status.error_code() == grpc::StatusCode::UNAVAILABLE &&
      IsShutOut(status.error_message())) {
    return absl::UnavailableError(
        "the service at \"" + options_.address + "\" closed the connection (" +
        status.error_message() +
        "); if it speaks TLS, give a token of it with --token-file FILE "
        "(its own user finds one in DATABASE.credentials/administer.token), or the authorities to "
        "trust with --tls-ca FILE");
  }
  return NobodyAnswers(options_.address, status.error_message());
}

Client::Client(ClientOptions options)
    : connection_(std::make_unique<Connection>(std::move(options))) {}

Client::~Client() = default;

const std::string& Client::address() const { return connection_->address(); }

void Client::LeaveCutOffCalls() { connection_->LeaveCutOffCalls(); }

absl::Status Client::CallByName(const char* operation, bool counts_once,
                                const google::protobuf::MessageLite& request,
                                google::protobuf::MessageLite& response) {
  return connection_->Call(absl::StrCat("/", v1::Tuner::service_full_name(), "/", operation),
                           counts_once, request, response);
}

absl::StatusOr<std::string> Client::CreateLoginCode() {
  v1::LoginCode made;
  // A code that nobody has been told ends by itself.
  ESPALIER_RETURN_IF_ERROR(
      connection_->Call(absl::StrCat("/", v1::Sessions::service_full_name(), "/CreateLoginCode"),
                        /*counts_once=*/true, v1::CreateLoginCodeRequest(), made));
  return made.code();
}

v1::StudyName StudyNamed(const std::string& name) {
  v1::StudyName study;
  study.set_name(name);
  return study;
}

}  // namespace espalier
