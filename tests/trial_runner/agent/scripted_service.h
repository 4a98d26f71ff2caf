#pragma once

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "tuner.grpc.pb.h"

namespace espalier {

// The service's end of the agent's stream on a real port: welcomes who says Hello, records what
// comes, acknowledges and sends what the test says. Can go away and come back on its port.
class ScriptedService : private v1::Tuner::Service {
 public:
  ScriptedService();
  ~ScriptedService() override { Close(); }

  void Open();
  void Close();
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  void Send(const v1::ServiceMessage& message);
  void Start(const v1::StartReplica& start);
  void Stop(std::int64_t replica_id, double grace_s);
  void Acknowledge(std::int64_t sequence);

  // Waits until the condition holds for the events received so far (false: a minute passed).
  using Events = std::vector<v1::AgentMessage>;
  bool Await(const std::function<bool(const Events&)>& condition);
  bool AwaitHeartbeats(int count);
  // The exit of a replica; fails the test if it does not come.
  v1::ReplicaExited AwaitExit(std::int64_t replica_id);

  // Where the agent gives its checkpoints away.
  v1::CheckpointServerOpen AwaitCheckpointServer();

  Events events();  // without Hello, heartbeats and endpoints
  std::vector<v1::Hello> hellos();
  std::string authorization();

 private:
  using Stream = grpc::ServerReaderWriter<v1::ServiceMessage, v1::AgentMessage>;
  grpc::Status Agent(grpc::ServerContext* context, Stream* stream) override;

  // Bound to its port, and never listens: nobody else has it while the service is away.
  FileDescriptor place_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Stream* stream_ = nullptr;
  Events events_;
  std::vector<v1::Hello> hellos_;
  std::vector<v1::CheckpointServerOpen> checkpoint_servers_;
  std::string authorization_;
  int heartbeats_ = 0;
};

}  // namespace espalier
