#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "trial_runner/agent/service_call.h"
#include "tuner.pb.h"

namespace espalier {

// The service's end of the agent's stream: welcomes who says Hello, records what comes,
// acknowledges and sends what the test says. Can go away and come back on its port, which is a real
// one but where calls are made in one process (tests/CMakeLists.txt).
class ScriptedService {
 public:
  ScriptedService();
  ~ScriptedService();

  void Open();
  void Close();
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  // In each welcome, before an agent comes. It sends none.
  void PromiseHeartbeats() { promises_heartbeats_ = true; }
  // How an agent with that token calls it.
  ServiceDialer Dial(const std::string& token);

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
  // A call as the service sees it, until it is over.
  struct Stream {
    std::function<bool(v1::AgentMessage*)> read;
    std::function<bool(const v1::ServiceMessage&)> write;
    std::string authorization;
  };
  class Endpoint;  // where calls come in: gRPC's, or one in this process
  void Serve(Stream& stream);

  // Bound to its port, and never listens: nobody else has it while the service is away.
  FileDescriptor place_;
  int port_ = 0;
  std::unique_ptr<Endpoint> endpoint_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Stream* stream_ = nullptr;
  Events events_;
  std::vector<v1::Hello> hellos_;
  std::vector<v1::CheckpointServerOpen> checkpoint_servers_;
  std::string authorization_;
  int heartbeats_ = 0;
  bool promises_heartbeats_ = false;
};

}  // namespace espalier
