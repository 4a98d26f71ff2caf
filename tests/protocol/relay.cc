#include "tests/protocol/relay.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <thread>
#include <utility>

#include "tuner.grpc.pb.h"

namespace espalier {

class Relay::Server final : public v1::Tuner::Service {
 public:
  Server(Relay& relay, const std::string& service_address)
      : relay_(relay),
        stub_(v1::Tuner::NewStub(
            grpc::CreateChannel(service_address, grpc::InsecureChannelCredentials()))) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Server() override { server_->Shutdown(std::chrono::system_clock::now()); }

  int port() const { return port_; }

  grpc::Status Agent(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::ServiceMessage, v1::AgentMessage>* agent) override {
    grpc::ClientContext context;
    const auto service = stub_->Agent(&context);
    std::thread answers([&] {
      v1::ServiceMessage message;
      while (service->Read(&message)) {
        relay_.Note("service", message.SerializeAsString());
        agent->Write(message);
      }
    });
    v1::AgentMessage message;
    while (agent->Read(&message)) {
      relay_.Note("agent", message.SerializeAsString());
      service->Write(message);
    }
    context.TryCancel();
    answers.join();
    return service->Finish();
  }

 private:
  Relay& relay_;
  const std::unique_ptr<v1::Tuner::Stub> stub_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

Relay::Relay(const std::string& service_address)
    : front_(std::make_unique<Server>(*this, service_address)) {}

Relay::~Relay() = default;

std::string Relay::address() const { return "127.0.0.1:" + std::to_string(front_->port()); }

void Relay::Note(const std::string& by, const std::string& bytes) {
  {
    const std::lock_guard lock(mutex_);
    recording_.push_back({by, bytes});
  }
  heard_.notify_all();
}

void Relay::Await(const std::function<bool(const Recording&)>& condition) {
  std::unique_lock lock(mutex_);
  heard_.wait(lock, [&] { return condition(recording_); });
}

Recording Relay::TakeRecording() {
  const std::lock_guard lock(mutex_);
  return std::exchange(recording_, {});
}

}  // namespace espalier
