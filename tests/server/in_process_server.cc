#include "tests/server/in_process_server.h"

#include <map>
#include <stdexcept>
#include <utility>

#include "tuner/server/grpc/agent_stream.h"
#include "tuner/server/loop/metrics.h"

namespace espalier {
namespace {

constexpr int kReactionThreads = 3;

// By address.
struct Servers {
  std::mutex mutex;
  std::map<std::string, InProcessServer*> all;
  int last = 0;
};
Servers& Registry() {
  static Servers servers;
  return servers;
}

std::string NewAddress() {
  Servers& servers = Registry();
  const std::lock_guard lock(servers.mutex);
  return "in-process:" + std::to_string(++servers.last);
}

}  // namespace

ReactionThreads::ReactionThreads() {
  for (int i = 0; i < kReactionThreads; ++i) threads_.emplace_back([this] { Run(); });
}

ReactionThreads::~ReactionThreads() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  posted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ReactionThreads::Post(std::function<void()> reaction) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(reaction));
  }
  posted_.notify_one();
}

void ReactionThreads::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    posted_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::function<void()> reaction = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    reaction();
    lock.lock();
  }
}

absl::StatusOr<std::unique_ptr<GrpcServer>> InProcessServer::Start(GrpcPlace place) {
  return std::make_unique<InProcessServer>(std::move(place));
}

InProcessServer& InProcessServer::At(const std::string& address) {
  Servers& servers = Registry();
  const std::lock_guard lock(servers.mutex);
  return *servers.all.at(address);
}

InProcessServer::InProcessServer(GrpcPlace place)
    : place_(std::move(place)), address_(NewAddress()) {
  Servers& servers = Registry();
  const std::lock_guard lock(servers.mutex);
  servers.all[address_] = this;
}

InProcessServer::~InProcessServer() {
  Stop();
  Servers& servers = Registry();
  const std::lock_guard lock(servers.mutex);
  servers.all.erase(address_);
}

void InProcessServer::Stop() {
  std::vector<std::weak_ptr<InProcessStream>> streams;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    streams = std::exchange(streams_, {});
  }
  for (const auto& stream : streams) {
    if (const auto open = stream.lock()) open->Cancel();
  }
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return open_ == 0; });
}

void InProcessServer::Count(const char* method, const absl::Status& status) {
  place_.metrics.CountRequest("grpc", method, absl::StatusCodeToString(status.code()));
}

std::shared_ptr<InProcessStream> InProcessServer::Dial() {
  auto stream = std::make_shared<InProcessStream>(reactions_, [this] {
    const std::lock_guard lock(mutex_);
    --open_;
    ended_.notify_all();
  });
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) {
      stream->Cancel();
      return stream;
    }
    ++open_;
    streams_.push_back(stream);
  }
  reactions_.Post([this, stream] { stream->Bind(place_.agents); });
  return stream;
}

void InProcessStream::Bind(Agents& agents) {
  {
    const std::lock_guard lock(mutex_);
    self_ = shared_from_this();
  }
  AgentReactor* const bound = StartAgentStream(
      context_, [this] { Cancel(); }, agents, [](const absl::Status&) {});
  {
    const std::lock_guard lock(mutex_);
    reactor_ = bound;
  }
  BindReactor(bound);
  const std::lock_guard lock(mutex_);
  bound_ = true;
  changed_.notify_all();
}

void InProcessStream::React(std::function<void(AgentReactor&)> reaction) {
  ++reactions_under_way_;
  reactions_.Post([this, reaction = std::move(reaction)] {
    AgentReactor* bound = nullptr;
    {
      // What happens while it is bound is kept by gRPC's lock, which is not seen.
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return bound_; });
      bound = reactor_;
    }
    reaction(*bound);
    std::shared_ptr<InProcessStream> self;
    {
      const std::lock_guard lock(mutex_);
      --reactions_under_way_;
      if (reactions_under_way_ > 0 || !finished_) return;
      self = std::move(self_);
    }
    bound->OnDone();
    ended_();
  });
}

void InProcessStream::Read(v1::AgentMessage* message) {
  const std::lock_guard lock(mutex_);
  if (to_service_.empty() && !broken_) {
    reading_ = message;
    return;
  }
  const bool ok = !to_service_.empty() && !broken_;
  if (ok) {
    *message = std::move(to_service_.front());
    to_service_.pop_front();
  }
  React([ok](AgentReactor& bound) { bound.OnReadDone(ok); });
}

void InProcessStream::Write(const v1::ServiceMessage* message, grpc::WriteOptions) {
  const std::lock_guard lock(mutex_);
  if (throws_at_writes_) throw std::runtime_error("no memory");
  const bool ok = !broken_;
  if (ok) to_agent_.push_back(*message);
  changed_.notify_all();
  React([ok](AgentReactor& bound) { bound.OnWriteDone(ok); });
}

void InProcessStream::Finish(grpc::Status status) {
  const std::lock_guard lock(mutex_);
  finished_ = true;
  status_ = broken_ ? grpc::Status(grpc::StatusCode::CANCELLED, "cancelled") : std::move(status);
  broken_ = true;
  changed_.notify_all();
  React([](AgentReactor&) {});  // looks whether all is done
}

bool InProcessStream::Write(const v1::AgentMessage& message) {
  const std::lock_guard lock(mutex_);
  if (broken_) return false;
  if (reading_ == nullptr) {
    to_service_.push_back(message);
    return true;
  }
  *std::exchange(reading_, nullptr) = message;
  React([](AgentReactor& bound) { bound.OnReadDone(true); });
  return true;
}

bool InProcessStream::Read(v1::ServiceMessage* message) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return broken_ || !to_agent_.empty(); });
  if (to_agent_.empty()) return false;
  *message = std::move(to_agent_.front());
  to_agent_.pop_front();
  return true;
}

grpc::Status InProcessStream::Finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return broken_; });
  return finished_ ? status_ : grpc::Status(grpc::StatusCode::CANCELLED, "cancelled");
}

void InProcessStream::ThrowAtWrites() {
  const std::lock_guard lock(mutex_);
  throws_at_writes_ = true;
}

void InProcessStream::Cancel() {
  const std::lock_guard lock(mutex_);
  broken_ = true;
  changed_.notify_all();
  if (std::exchange(reading_, nullptr) != nullptr) {
    React([](AgentReactor& bound) { bound.OnReadDone(false); });
  }
}

}  // namespace espalier
