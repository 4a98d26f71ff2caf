#pragma once

#include <memory>
#include <string>

#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/server/port_of.h"
#include "tuner.grpc.pb.h"
#include "tuner/server/service.h"
#ifdef ESPALIER_CALLS_IN_PROCESS
#include "tests/server/in_process_server.h"
#endif

namespace espalier {

// How tests speak with the service: over gRPC, or where all synchronisation has to be seen
// (in_process_server.h) without it.
#ifdef ESPALIER_CALLS_IN_PROCESS
using TunerStub = InProcessTunerStub;
using AgentConnection = std::shared_ptr<InProcessStream>;
inline StartGrpc GrpcOfTests() { return InProcessServer::Start; }
inline std::unique_ptr<TunerStub> StubOf(const Service& service) {
  return std::make_unique<TunerStub>(InProcessServer::At(service.grpc_address()));
}
inline void Break(grpc::ClientContext&, const AgentConnection& stream) { stream->Cancel(); }
#else
using TunerStub = v1::Tuner::Stub;
using AgentConnection =
    std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::ServiceMessage> >;
inline StartGrpc GrpcOfTests() { return {}; }
inline std::unique_ptr<TunerStub> StubOf(const Service& service) {
  return v1::Tuner::NewStub(
      grpc::CreateChannel(service.grpc_address(), grpc::InsecureChannelCredentials()));
}
inline void Break(grpc::ClientContext& context, const AgentConnection&) { context.TryCancel(); }
#endif

// A whole service on loopback, and a client that speaks to it. Its agents need not beat: unless the
// test says otherwise, their lease is longer than any test.
class RunningService {
 public:
  static constexpr double kLease_s = 3600;

  explicit RunningService(ServiceOptions options = {}) {
    if (options.http_address.empty()) options.http_address = "127.0.0.1:0";
    if (options.lease_s == ServiceOptions().lease_s) options.lease_s = kLease_s;
    options.start_grpc = GrpcOfTests();
    auto started = Service::Start(options);
    EXPECT_TRUE(started.ok()) << started.status();
    if (!started.ok()) return;
    service = *std::move(started);
    stub = StubOf(*service);
  }

  int http_port() const { return PortOf(service->http_address()); }

  grpc::Status Create(const v1::CreateStudyRequest& request, v1::Study* study = nullptr) {
    grpc::ClientContext context;
    v1::Study unused;
    return stub->CreateStudy(&context, request, study != nullptr ? study : &unused);
  }

  grpc::Status Get(const std::string& name, v1::StudyDetails* details,
                   const std::string& token = {}) {
    grpc::ClientContext context;
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    v1::GetStudyRequest request;
    request.set_name(name);
    return stub->GetStudy(&context, request, details);
  }

  std::unique_ptr<Service> service;
  std::unique_ptr<TunerStub> stub;
};

// An agent as the test tells it to be.
class ScriptedAgent {
 public:
  ScriptedAgent(RunningService& service, const std::string& node, int slots,
                const std::string& incarnation, const std::string& token = {})
      : stream_(service.stub->Agent(Showing(context_, token))) {
    v1::AgentMessage hello;
    hello.mutable_hello()->set_node_name(node);
    hello.mutable_hello()->set_slots(slots);
    hello.mutable_hello()->set_incarnation(incarnation);
    stream_->Write(hello);
  }
  ScriptedAgent(RunningService& service, const v1::Hello& hello)
      : stream_(service.stub->Agent(&context_)) {
    v1::AgentMessage message;
    *message.mutable_hello() = hello;
    stream_->Write(message);
  }
  ~ScriptedAgent() { Cancel(); }

  // The next message that is not a heartbeat; KIND_NOT_SET if the stream has ended.
  v1::ServiceMessage Next() {
    v1::ServiceMessage message;
    while (stream_->Read(&message)) {
      if (!message.has_heartbeat()) return message;
    }
    return {};
  }

  // The next message for which `wanted` holds.
  template <typename Wanted>
  v1::ServiceMessage Await(Wanted wanted) {
    v1::ServiceMessage message = Next();
    while (message.kind_case() != v1::ServiceMessage::KIND_NOT_SET && !wanted(message)) {
      message = Next();
    }
    return message;
  }

  v1::StartReplica AwaitStart() {
    return Await([](const auto& message) { return message.has_start(); }).start();
  }

  std::int64_t Say(v1::AgentMessage message) {
    message.set_sequence(++sequence_);
    stream_->Write(message);
    return sequence_;
  }

  void AwaitAcknowledge(std::int64_t sequence) {
    const auto message = Await([sequence](const v1::ServiceMessage& m) {
      return m.has_acknowledge() && m.acknowledge().sequence() >= sequence;
    });
    EXPECT_TRUE(message.has_acknowledge());
  }

  std::int64_t Report(std::int64_t replica, std::int64_t step, double value) {
    v1::AgentMessage message;
    message.mutable_from_replica()->set_replica_id(replica);
    auto& report = *message.mutable_from_replica()->mutable_message()->mutable_report();
    report.set_step(step);
    report.set_value(value);
    return Say(message);
  }

  grpc::Status Finish() { return stream_->Finish(); }
  void Cancel() { Break(context_, stream_); }

 private:
  static grpc::ClientContext* Showing(grpc::ClientContext& context, const std::string& token) {
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    return &context;
  }

  grpc::ClientContext context_;
  AgentConnection stream_;
  std::int64_t sequence_ = 0;
};

}  // namespace espalier
