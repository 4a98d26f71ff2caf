#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "grpcpp/test/default_reactor_test_peer.h"
#include "tuner.pb.h"
#include "tuner/api/operations.h"
#include "tuner/proto/grpc_status.h"
#include "tuner/server/grpc/agent_stream.h"
#include "tuner/server/grpc/grpc_service.h"

namespace espalier {

// Calls reactors as gRPC would: on threads of its own, several at a time.
class ReactionThreads {
 public:
  ReactionThreads();
  ~ReactionThreads();  // does what is left

  void Post(std::function<void()> reaction);

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

// Both ends of an agent's stream: the service's through gRPC's own interface, the agent's as a
// client has it. What is written arrives at once.
class InProcessStream;

// Stands for gRPC's server, its threads and its wire, in programs in which all synchronisation has
// to be seen: the thread sanitizer does not see that of gRPC's library. Neither tokens nor versions
// are looked at. Methods may be called from any thread.
class InProcessServer final : public GrpcServer {
 public:
  // As GrpcServer::Start.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(GrpcPlace place);
  // The one with that address, which must be there.
  static InProcessServer& At(const std::string& address);

  explicit InProcessServer(GrpcPlace place);
  ~InProcessServer() override;

  std::string address() const override { return address_; }
  void Stop() override;

  Tuner& tuner() { return place_.tuner; }
  void Count(const char* method, const absl::Status& status);

  // The agent's end of a new stream.
  std::shared_ptr<InProcessStream> Dial();

  // The frontend's service of that type, which must be there.
  template <typename Service>
  Service& Find() const {
    for (const auto& service : place_.of_frontends) {
      if (auto* found = dynamic_cast<Service*>(service.get())) return *found;
    }
    std::abort();
  }

 private:
  GrpcPlace place_;
  const std::string address_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<std::weak_ptr<InProcessStream>> streams_;
  int open_ = 0;  // streams
  bool stopping_ = false;
  ReactionThreads reactions_;
};

class InProcessStream final
    : public grpc::ServerCallbackReaderWriter<v1::AgentMessage, v1::ServiceMessage>,
      public std::enable_shared_from_this<InProcessStream> {
 public:
  InProcessStream(ReactionThreads& reactions, std::function<void()> ended)
      : reactions_(reactions), ended_(std::move(ended)) {}

  // Begins the service's end.
  void Bind(Agents& agents);

  // The agent's end, as grpc::ClientReaderWriter.
  bool Write(const v1::AgentMessage& message);
  bool Read(v1::ServiceMessage* message);
  grpc::Status Finish();
  void Cancel();  // either end

  // From now on the service's end throws where it is to write.
  void ThrowAtWrites();

 private:
  // The service's end.
  void Read(v1::AgentMessage* message) override;
  void Write(const v1::ServiceMessage* message, grpc::WriteOptions) override;
  void WriteAndFinish(const v1::ServiceMessage*, grpc::WriteOptions, grpc::Status) override {
    std::abort();  // ours does not
  }
  void Finish(grpc::Status status) override;
  void SendInitialMetadata() override {}
  grpc::internal::ServerReactor* reactor() override { return reactor_; }
  void CallOnDone() override {}

  // Requires the lock.
  void React(std::function<void(AgentReactor&)> reaction);

  ReactionThreads& reactions_;
  const std::function<void()> ended_;
  grpc::CallbackServerContext context_;
  std::mutex mutex_;
  std::condition_variable changed_;
  AgentReactor* reactor_ = nullptr;
  bool bound_ = false;  // to it
  std::deque<v1::AgentMessage> to_service_;
  std::deque<v1::ServiceMessage> to_agent_;
  v1::AgentMessage* reading_ = nullptr;
  int reactions_under_way_ = 0;
  bool throws_at_writes_ = false;
  bool broken_ = false;
  bool finished_ = false;
  grpc::Status status_;
  std::shared_ptr<InProcessStream> self_;  // until the service is done with it
};

// A unary call of a service that answers by reactors, as gRPC would make it.
template <typename Service, typename Request, typename Reply>
grpc::Status CallInProcess(Service& service,
                           grpc::ServerUnaryReactor* (Service::*method)(
                               grpc::CallbackServerContext*, const Request*, Reply*),
                           const Request& request, Reply* reply) {
  grpc::CallbackServerContext context;
  std::mutex mutex;
  std::condition_variable changed;
  bool finished = false;
  const grpc::testing::DefaultReactorTestPeer peer(&context, [&](const grpc::Status&) {
    const std::lock_guard lock(mutex);
    finished = true;
    changed.notify_all();
  });
  (service.*method)(&context, &request, reply);
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&finished] { return finished; });
  }
  // The reactor is done with the context a moment later.
  while (!peer.test_status_set()) std::this_thread::yield();
  return peer.test_status();
}

// In the place of v1::Tuner::Stub, as far as tests use that.
class InProcessTunerStub {
 public:
  explicit InProcessTunerStub(InProcessServer& server) : server_(server) {}

  grpc::Status CreateStudy(grpc::ClientContext*, const v1::CreateStudyRequest& request,
                           v1::Study* study) {
    return Tell("CreateStudy", api::CreateStudy(server_.tuner(), request), study);
  }
  grpc::Status GetStudy(grpc::ClientContext*, const v1::GetStudyRequest& request,
                        v1::StudyDetails* details) {
    return Tell("GetStudy", api::GetStudy(server_.tuner(), request), details);
  }
  grpc::Status GetPool(grpc::ClientContext*, const v1::GetPoolRequest& request, v1::Pool* pool) {
    return Tell("GetPool", api::GetPool(server_.tuner(), request), pool);
  }
  grpc::Status CreateToken(grpc::ClientContext*, const v1::CreateTokenRequest& request,
                           v1::Token* token) {
    return Tell("CreateToken", api::CreateToken(server_.tuner(), request), token);
  }
  std::shared_ptr<InProcessStream> Agent(grpc::ClientContext*) { return server_.Dial(); }

 private:
  template <typename Response>
  grpc::Status Tell(const char* method, absl::StatusOr<Response> answer, Response* response) {
    server_.Count(method, answer.status());
    if (answer.ok()) *response = std::move(*answer);
    return ToGrpc(answer.status());
  }

  InProcessServer& server_;
};

}  // namespace espalier
