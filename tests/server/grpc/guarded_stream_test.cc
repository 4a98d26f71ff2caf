// What throws while an agent's stream is served ends that stream.

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/in_process_server.h"
#include "tuner/server/grpc/agents.h"
#include "tuner/server/grpc/send_thread.h"
#include "tuner/server/loop/loop.h"
#include "tuner/server/loop/metrics.h"

namespace espalier {
namespace {

using testing::HasSubstr;

v1::AgentMessage Hello(const std::string& node) {
  v1::AgentMessage message;
  message.mutable_hello()->set_node_name(node);
  message.mutable_hello()->set_slots(1);
  return message;
}

v1::AgentMessage Heartbeat() {
  v1::AgentMessage message;
  message.mutable_heartbeat();
  return message;
}

// A service's end of agents' streams, whose clock the test breaks.
class GuardedStream : public testing::Test {
 protected:
  explicit GuardedStream(double lease_s = 3600)
      : agents_(lease_s,
                [this] {
                  if (broken_ && std::this_thread::get_id() != owner_) {
                    ++thrown_;
                    throw std::runtime_error("the clock is broken");
                  }
                  return Time{0};
                }),
        loop_(MakeMemoryStorage(), TunerState{}, LoopOptions{}, metrics_,
              [this](const std::vector<Command>& commands, const TunerState& state) {
                agents_.Send(commands, state);
              }),
        server_({.address = {},
                 .tls = {},
                 .access = access_,
                 .tuner = loop_,
                 .agents = agents_,
                 .metrics = metrics_}) {
    EXPECT_TRUE(loop_.Read([this](const View&) { owner_ = std::this_thread::get_id(); }).ok());
    agents_.Start(loop_);
  }
  ~GuardedStream() override {
    agents_.Stop();
    server_.Stop();
    loop_.Stop();
  }

  std::shared_ptr<InProcessStream> Joined(const std::string& node) {
    auto stream = server_.Dial();
    stream->Write(Hello(node));
    EXPECT_TRUE(stream->Read(&message_));
    return stream;
  }
  // It ends, by the name of what threw.
  void ExpectEnd(InProcessStream& stream, const std::string& name) {
    while (stream.Read(&message_)) {
    }
    const grpc::Status ended = stream.Finish();
    EXPECT_EQ(ended.error_code(), grpc::StatusCode::INTERNAL);
    EXPECT_THAT(ended.error_message(), HasSubstr(name + ": the clock is broken"));
  }

  std::atomic<bool> broken_ = false;
  std::atomic<int> thrown_ = 0;
  std::thread::id owner_;
  Agents agents_;
  Metrics metrics_;
  Loop loop_;
  const AccessControl access_{AccessControlOptions{}};
  InProcessServer server_;
  v1::ServiceMessage message_;
};

TEST_F(GuardedStream, AMessageThatThrowsEndsItsStreamByName) {
  const auto oak = Joined("oak");
  broken_ = true;
  oak->Write(Heartbeat());
  ExpectEnd(*oak, "a message of an agent");
  broken_ = false;
  Joined("elm");  // others go on
}

TEST_F(GuardedStream, AHelloThatThrowsEndsItsStreamByName) {
  const auto oak = Joined("oak");
  broken_ = true;
  const auto twin = server_.Dial();
  v1::AgentMessage hello = Hello("oak");
  hello.mutable_hello()->set_incarnation("another");
  twin->Write(hello);
  ExpectEnd(*twin, "agent oak");
  broken_ = false;
  Joined("elm");
}

TEST_F(GuardedStream, AMessageThatCannotBeSentEndsItsStreamAlone) {
  const auto oak = server_.Dial();
  oak->ThrowAtWrites();
  oak->Write(Hello("oak"));
  EXPECT_FALSE(oak->Read(&message_));
  Joined("elm");
}

class GuardedHeartbeats : public GuardedStream {
 protected:
  GuardedHeartbeats() : GuardedStream(0.01) {}
};

TEST_F(GuardedHeartbeats, OneThatThrowsIsMissedAndTheNextIsSent) {
  const auto oak = Joined("oak");
  broken_ = true;
  while (thrown_ < 2) std::this_thread::yield();
  broken_ = false;
  while (oak->Read(&message_) && !message_.has_heartbeat()) {
  }
  EXPECT_TRUE(message_.has_heartbeat());
}

TEST(SendThread, WhatThrowsKeepsNothingBack) {
  std::promise<void> sent;
  SendThread sender;
  sender.Post([] { throw std::runtime_error("no memory"); });
  sender.Post([&sent] { sent.set_value(); });
  sent.get_future().wait();
}

}  // namespace
}  // namespace espalier
