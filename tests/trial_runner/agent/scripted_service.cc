#include "tests/trial_runner/agent/scripted_service.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>

#include "base/local_end.h"

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
  Open();
}

void ScriptedService::Open() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:" + std::to_string(port_), grpc::InsecureServerCredentials(),
                           &port_);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  ASSERT_NE(server_, nullptr);
}

void ScriptedService::Close() {
  if (!server_) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_.reset();
}

grpc::Status ScriptedService::Agent(grpc::ServerContext* context, Stream* stream) {
  v1::AgentMessage message;
  while (stream->Read(&message)) {
    const std::lock_guard lock(mutex_);
    if (message.has_hello()) {
      hellos_.push_back(message.hello());
      const auto header = context->client_metadata().find("authorization");
      if (header != context->client_metadata().end()) {
        authorization_.assign(header->second.data(), header->second.size());
      }
      v1::ServiceMessage welcome;
      welcome.mutable_welcome()->set_node_id(5);
      welcome.mutable_welcome()->set_lease_s(0.2);
      stream->Write(welcome);
      stream_ = stream;
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
  if (stream_ == stream) stream_ = nullptr;
  return grpc::Status::OK;
}

void ScriptedService::Send(const v1::ServiceMessage& message) {
  std::unique_lock lock(mutex_);
  ASSERT_TRUE(
      changed_.wait_for(lock, std::chrono::minutes(1), [this] { return stream_ != nullptr; }));
  ASSERT_TRUE(stream_->Write(message));
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
