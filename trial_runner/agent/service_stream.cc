#include "trial_runner/agent/service_stream.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/protocol.h"
#include "tuner.grpc.pb.h"
#include "tuner/credentials/access_token.h"
#include "tuner/credentials/pinned_certificate.h"
#include "tuner/proto/grpc_status.h"

namespace espalier {
namespace {

constexpr std::chrono::milliseconds kFirstBackoff{50};
constexpr std::chrono::milliseconds kLongestBackoff{2000};

// A channel of its own for each dial: a shared one would keep gRPC's own, longer backoff. A service
// that is known by the hash in its token is asked for its certificate first.
absl::StatusOr<std::shared_ptr<grpc::Channel>> Dial(const std::string& address,
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

}  // namespace

struct ServiceStream::Connection {
  grpc::ClientContext context;
  std::unique_ptr<v1::Tuner::Stub> stub;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::ServiceMessage>> stream;
};

ServiceStream::ServiceStream(std::string address, std::string token, std::string tls_roots,
                             int wake_fd)
    : address_(std::move(address)),
      token_(std::move(token)),
      tls_roots_(std::move(tls_roots)),
      wake_fd_(wake_fd),
      dialler_([this] { DialForEver(); }) {}

ServiceStream::~ServiceStream() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    if (context_ != nullptr) context_->TryCancel();
  }
  changed_.notify_all();
  dialler_.join();
}

std::vector<ServiceStream::Arrival> ServiceStream::TakeArrivals() {
  std::vector<Arrival> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.assign(std::make_move_iterator(arrivals_.begin()),
                 std::make_move_iterator(arrivals_.end()));
    arrivals_.clear();
  }
  changed_.notify_all();
  return taken;
}

bool ServiceStream::Send(std::int64_t stream, const v1::AgentMessage& message) {
  {
    const std::lock_guard lock(mutex_);
    if (!open_ || stream != stream_ || outgoing_.size() >= kMaxStreamQueue) return false;
    outgoing_.push_back(message);
  }
  changed_.notify_all();
  return true;
}

void ServiceStream::Break() {
  const std::lock_guard lock(mutex_);
  if (context_ != nullptr) context_->TryCancel();
}

void ServiceStream::DialForEver() {
  std::chrono::milliseconds backoff = kFirstBackoff;
  while (true) {
    const bool answered = RunOnce();
    if (answered) backoff = kFirstBackoff;
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, backoff, [this] { return closing_; })) return;
    backoff = std::min(backoff * 2, kLongestBackoff);
  }
}

bool ServiceStream::RunOnce() {
  Connection connection;
  std::int64_t stream = 0;
  connection.context.AddMetadata(kProtocolHeader, ProtocolText());
  if (!token_.empty()) connection.context.AddMetadata("authorization", "Bearer " + token_);
  const auto channel = Dial(address_, token_, tls_roots_);
  if (!channel.ok()) {
    Post({.kind = ArrivalKind::kBroken,
          .stream = stream_,
          .message = {},
          .status = channel.status(),
          .peer = {}});
    return false;
  }
  connection.stub = v1::Tuner::NewStub(*channel);
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return false;
    context_ = &connection.context;
    open_ = true;
    stream = ++stream_;
  }
  connection.stream = connection.stub->Agent(&connection.context);
  Post({.kind = ArrivalKind::kOpened, .stream = stream, .message = {}, .status = {}, .peer = {}});
  std::thread writer([&] { Write(connection); });
  bool answered = false;
  std::string peer;  // known once there is a connection
  v1::ServiceMessage message;
  while (connection.stream->Read(&message)) {
    if (!answered) peer = connection.context.peer();
    answered = true;
    Post({.kind = ArrivalKind::kMessage,
          .stream = stream,
          .message = std::move(message),
          .status = {},
          .peer = peer});
    message.Clear();
  }
  {
    const std::lock_guard lock(mutex_);
    open_ = false;
    outgoing_.clear();
  }
  // The call is over. Cancelled now it would lose the service's word of why.
  changed_.notify_all();
  writer.join();
  const grpc::Status status = connection.stream->Finish();
  {
    const std::lock_guard lock(mutex_);
    context_ = nullptr;
  }
  Post({.kind = ArrivalKind::kBroken,
        .stream = stream,
        .message = {},
        .status = FromGrpc(status),
        .peer = {}});
  return answered;
}

void ServiceStream::Write(Connection& connection) {
  while (true) {
    v1::AgentMessage message;
    bool was_full = false;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !open_ || !outgoing_.empty(); });
      if (!open_) return;
      message = std::move(outgoing_.front());
      was_full = outgoing_.size() >= kMaxStreamQueue;
      outgoing_.pop_front();
    }
    if (was_full) Wake();
    if (!connection.stream->Write(message)) return;  // the reader is told why
  }
}

void ServiceStream::Post(Arrival arrival) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closing_ || arrivals_.size() < kMaxStreamQueue; });
    arrivals_.push_back(std::move(arrival));
  }
  Wake();
}

void ServiceStream::Wake() const {
  const std::uint64_t one = 1;
  // An eventfd refuses only when its counter is full, and then the owner is awake anyway.
  [[maybe_unused]] const ssize_t written = write(wake_fd_, &one, sizeof one);
}

}  // namespace espalier
