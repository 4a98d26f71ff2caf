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

TEST(GuardedStream, AMessageThatThrowsEndsItsStreamByName) {
  std::atomic<bool> broken = false;
  std::thread::id owner;
  Agents agents(3600, [&] {
    if (broken && std::this_thread::get_id() != owner) {
      throw std::runtime_error("the clock is broken");
    }
    return Now();
  });
  Metrics metrics;
  Loop loop(MakeMemoryStorage(), TunerState{}, LoopOptions{}, metrics,
            [&](const std::vector<Command>& commands, const TunerState& state) {
              agents.Send(commands, state);
            });
  ASSERT_TRUE(loop.Read([&](const View&) { owner = std::this_thread::get_id(); }).ok());
  agents.Start(loop);
  const AccessControl access(AccessControlOptions{});
  InProcessServer server({.address = {},
                          .tls = {},
                          .access = access,
                          .tuner = loop,
                          .agents = agents,
                          .metrics = metrics});
  v1::ServiceMessage message;
  const auto oak = server.Dial();
  oak->Write(Hello("oak"));
  ASSERT_TRUE(oak->Read(&message));
  broken = true;
  oak->Write(Heartbeat());
  EXPECT_FALSE(oak->Read(&message));
  const grpc::Status ended = oak->Finish();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_THAT(ended.error_message(), HasSubstr("a message of an agent: the clock is broken"));
  broken = false;
  const auto elm = server.Dial();
  elm->Write(Hello("elm"));
  EXPECT_TRUE(elm->Read(&message)) << "others go on";
  agents.Stop();
  server.Stop();
  loop.Stop();
}

TEST(GuardedStream, WhatThrowsWhileItIsSentKeepsNothingBack) {
  std::promise<void> sent;
  SendThread sender;
  sender.Post([] { throw std::runtime_error("no memory"); });
  sender.Post([&sent] { sent.set_value(); });
  sent.get_future().wait();
}

}  // namespace
}  // namespace espalier
