#include "tests/trial_runner/agent/scripted_service.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <deque>
#include <thread>
#include <utility>

#include "base/local_end.h"
#include "tuner.grpc.pb.h"

namespace espalier {

ScriptedService::ScriptedService() : place_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const int yes = 1;
  setsockopt(place_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  setsockopt(place_.get(), SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(bind(place_.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
  port_ = LocalEnd(place_.get()).port;
  endpoint_ = std::make_unique<Endpoint>(*this);
  Open();
}

#ifdef ESPALIER_CALLS_IN_PROCESS

// Both ends of a call, and a thread that stands for the service's.
class InProcessCall {
 public:
  bool Read(v1::AgentMessage* message) { return Take(to_service_, message); }
  bool Read(v1::ServiceMessage* message) { return Take(to_agent_, message); }
  bool Write(const v1::AgentMessage& message) { return Put(to_service_, message); }
  bool Write(const v1::ServiceMessage& message) { return Put(to_agent_, message); }
  void End() {
    const std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }

 private:
  template <typename Message>
  bool Take(std::deque<Message>& from, Message* message) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return over_ || !from.empty(); });
    if (from.empty()) return false;
    *message = std::move(from.front());
    from.pop_front();
    return true;
  }
  template <typename Message>
  bool Put(std::deque<Message>& to, const Message& message) {
    const std::lock_guard lock(mutex_);
    if (over_) return false;
    to.push_back(message);
    changed_.notify_all();
    return true;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<v1::AgentMessage> to_service_;
  std::deque<v1::ServiceMessage> to_agent_;
  bool over_ = false;
};

// Always there; refuses calls while it is closed.
class ScriptedService::Endpoint {
 public:
  explicit Endpoint(ScriptedService& service) : service_(service) {}
  ~Endpoint() { Close(); }

  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
  }

  void Close() {
    std::vector<std::shared_ptr<InProcessCall>> calls;
    std::vector<std::thread> threads;
    {
      const std::lock_guard lock(mutex_);
      open_ = false;
      calls = std::exchange(calls_, {});
      threads = std::exchange(threads_, {});
    }
    for (const auto& call : calls) call->End();
    for (std::thread& thread : threads) thread.join();
  }

  // False: it is closed.
  bool Take(const std::shared_ptr<InProcessCall>& call, const std::string& token) {
    const std::lock_guard lock(mutex_);
    if (!open_) return false;
    calls_.push_back(call);
    threads_.emplace_back([this, call, token] {
      Stream stream{[call](v1::AgentMessage* message) { return call->Read(message); },
                    [call](const v1::ServiceMessage& message) { return call->Write(message); },
                    token.empty() ? "" : "Bearer " + token};
      service_.Serve(stream);
      call->End();
    });
    return true;
  }

 private:
  ScriptedService& service_;
  std::mutex mutex_;
  bool open_ = false;
  std::vector<std::shared_ptr<InProcessCall>> calls_;
  std::vector<std::thread> threads_;
};

ServiceDialer ScriptedService::Dial(const std::string& token) {
  class Call final : public ServiceCall {
   public:
    Call(ScriptedService& service, std::string token)
        : service_(service), token_(std::move(token)) {}
    void Open() override {
      taken_ = service_.endpoint_->Take(call_, token_);
      if (!taken_) call_->End();
    }
    bool Read(v1::ServiceMessage* message) override { return call_->Read(message); }
    bool Write(const v1::AgentMessage& message) override { return call_->Write(message); }
    std::string peer() const override { return "ipv4:" + service_.address(); }
    void Cancel() override { call_->End(); }
    absl::Status Finish() override {
      return taken_ ? absl::OkStatus() : absl::UnavailableError("nobody is there");
    }

   private:
    ScriptedService& service_;
    const std::string token_;
    const std::shared_ptr<InProcessCall> call_ = std::make_shared<InProcessCall>();
    bool taken_ = false;
  };
  return [this, token]() -> absl::StatusOr<std::unique_ptr<ServiceCall>> {
    return std::make_unique<Call>(*this, token);
  };
}

#else

class ScriptedService::Endpoint : private v1::Tuner::Service {
 public:
  explicit Endpoint(ScriptedService& service) : service_(service) {}
  ~Endpoint() override { Close(); }

  void Open() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(service_.address(), grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }

  void Close() {
    if (!server_) return;
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    server_.reset();
  }

 private:
  grpc::Status Agent(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::ServiceMessage, v1::AgentMessage>* by_grpc) override {
    Stream stream{[by_grpc](v1::AgentMessage* message) { return by_grpc->Read(message); },
                  [by_grpc](const v1::ServiceMessage& message) { return by_grpc->Write(message); },
                  {}};
    const auto header = context->client_metadata().find("authorization");
    if (header != context->client_metadata().end()) {
      stream.authorization.assign(header->second.data(), header->second.size());
    }
    service_.Serve(stream);
    return grpc::Status::OK;
  }

  ScriptedService& service_;
  std::unique_ptr<grpc::Server> server_;
};

ServiceDialer ScriptedService::Dial(const std::string&) { return {}; }

#endif

ScriptedService::~ScriptedService() { Close(); }

void ScriptedService::Open() { endpoint_->Open(); }
void ScriptedService::Close() { endpoint_->Close(); }

void ScriptedService::Serve(Stream& stream) {
  v1::AgentMessage message;
  while (stream.read(&message)) {
    const std::lock_guard lock(mutex_);
    if (message.has_hello()) {
      hellos_.push_back(message.hello());
      if (!stream.authorization.empty()) authorization_ = stream.authorization;
      v1::ServiceMessage welcome;
      welcome.mutable_welcome()->set_node_id(5);
      welcome.mutable_welcome()->set_lease_s(0.2);
      welcome.mutable_welcome()->set_sends_heartbeats(promises_heartbeats_);
      stream.write(welcome);
      stream_ = &stream;
    } else if (message.has_heartbeat()) {
      ++heartbeats_;
    } else if (message.has_checkpoint_server()) {
      checkpoint_servers_.push_back(message.checkpoint_server());
    } else {
      events_.push_back(message);
    }
    changed_.notify_all();
  }
  const std::lock_guard lock(mutex_);
  if (stream_ == &stream) stream_ = nullptr;
}

void ScriptedService::Send(const v1::ServiceMessage& message) {
  std::unique_lock lock(mutex_);
  ASSERT_TRUE(
      changed_.wait_for(lock, std::chrono::minutes(1), [this] { return stream_ != nullptr; }));
  ASSERT_TRUE(stream_->write(message));
}

void ScriptedService::Start(const v1::StartReplica& start) {
  v1::ServiceMessage message;
  *message.mutable_start() = start;
  Send(message);
}

void ScriptedService::Stop(std::int64_t replica_id, double grace_s) {
  v1::ServiceMessage message;
  message.mutable_stop()->set_replica_id(replica_id);
  message.mutable_stop()->set_grace_s(grace_s);
  Send(message);
}

void ScriptedService::Acknowledge(std::int64_t sequence) {
  v1::ServiceMessage message;
  message.mutable_acknowledge()->set_sequence(sequence);
  Send(message);
}

bool ScriptedService::Await(const std::function<bool(const Events&)>& condition) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::minutes(1), [&] { return condition(events_); });
}

bool ScriptedService::AwaitHeartbeats(int count) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::minutes(1), [&] { return heartbeats_ >= count; });
}

v1::ReplicaExited ScriptedService::AwaitExit(std::int64_t replica_id) {
  v1::ReplicaExited exited;
  EXPECT_TRUE(Await([&](const Events& events) {
    for (const v1::AgentMessage& event : events) {
      if (!event.has_exited() || event.exited().replica_id() != replica_id) continue;
      exited = event.exited();
      return true;
    }
    return false;
  })) << "replica "
      << replica_id << " did not exit";
  return exited;
}

v1::CheckpointServerOpen ScriptedService::AwaitCheckpointServer() {
  std::unique_lock lock(mutex_);
  EXPECT_TRUE(changed_.wait_for(lock, std::chrono::minutes(1),
                                [&] { return !checkpoint_servers_.empty(); }));
  return checkpoint_servers_.empty() ? v1::CheckpointServerOpen() : checkpoint_servers_.back();
}

ScriptedService::Events ScriptedService::events() {
  const std::lock_guard lock(mutex_);
  return events_;
}

std::vector<v1::Hello> ScriptedService::hellos() {
  const std::lock_guard lock(mutex_);
  return hellos_;
}

std::string ScriptedService::authorization() {
  const std::lock_guard lock(mutex_);
  return authorization_;
}

}  // namespace espalier
