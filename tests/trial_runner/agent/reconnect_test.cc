#include <gtest/gtest.h>
#include <signal.h>

#include "tests/trial_runner/agent/agent_fixture.h"

namespace espalier {
namespace {

std::vector<std::int64_t> Sequences(const ScriptedService::Events& events) {
  std::vector<std::int64_t> sequences;
  for (const v1::AgentMessage& event : events) sequences.push_back(event.sequence());
  return sequences;
}

v1::ReplicaMessage ReadyAt(const std::string& address) {
  v1::ReplicaMessage message;
  message.mutable_ready()->set_address(address);
  return message;
}

v1::ReplicaMessage RegroupedTo(std::int64_t generation) {
  v1::ReplicaMessage message;
  message.mutable_regrouped()->set_generation(generation);
  return message;
}

// Waits for a file to appear, tells a message, and ends.
constexpr char kPatient[] = "while [ ! -e go ]; do sleep 0.01; done; cat frame >&3; exit 4";

TEST_F(AgentTest, SendsUnacknowledgedEventsAgainOnceAndInOrder) {
  StartAgent();
  WriteFrame("frame", RegroupedTo(3));
  service_.Start(Shell(1, kPatient));
  const int pid = AwaitPid(1);
  service_.Close();
  WriteFile("go", "");
  ASSERT_TRUE(AwaitProcessEnd(pid));
  service_.Open();
  EXPECT_EQ(service_.AwaitExit(1).exit_code(), 4);
  EXPECT_EQ(Sequences(service_.events()), (std::vector<std::int64_t>{1, 1, 2, 3}));
  ASSERT_EQ(service_.hellos().size(), 2U);
  // Ended, but the service does not know that yet.
  ASSERT_EQ(service_.hellos()[1].replicas_size(), 1);
  EXPECT_EQ(service_.hellos()[1].replicas(0).replica_id(), 1);
  EXPECT_EQ(service_.hellos()[1].incarnation(), service_.hellos()[0].incarnation());

  service_.Acknowledge(3);
  service_.Start(Shell(2, ""));  // obeyed after the acknowledgement
  service_.AwaitExit(2);
  service_.Acknowledge(5);
  service_.Start(Shell(3, ""));
  service_.AwaitExit(3);
  service_.Close();
  service_.Open();
  ASSERT_TRUE(service_.Await([](const auto& events) { return events.size() == 10; }));
  EXPECT_EQ(Sequences(service_.events()),
            (std::vector<std::int64_t>{1, 1, 2, 3, 4, 5, 6, 7, 6, 7}));
  ASSERT_EQ(service_.hellos().size(), 3U);
  ASSERT_EQ(service_.hellos()[2].replicas_size(), 1);
  EXPECT_EQ(service_.hellos()[2].replicas(0).replica_id(), 3);
}

TEST_F(AgentTest, HelloListsWhatRunsAsItSaidIt) {
  StartAgent();
  WriteFrame("ready", ReadyAt("127.0.0.1:4711"));
  WriteFrame("frame", RegroupedTo(6));
  service_.Start(Shell(1, "cat ready frame >&3; exec sleep 1000"));
  ASSERT_TRUE(service_.Await([](const auto& events) { return events.size() == 3; }));
  const int pid = AwaitPid(1);
  service_.Close();
  service_.Open();
  // The resent events follow Hello.
  ASSERT_TRUE(service_.Await([](const auto& events) { return events.size() == 6; }));
  const v1::Hello hello = service_.hellos().back();
  ASSERT_EQ(hello.replicas_size(), 1);
  EXPECT_EQ(hello.replicas(0).replica_id(), 1);
  EXPECT_EQ(hello.replicas(0).trial_id(), 31);
  EXPECT_EQ(hello.replicas(0).slot(), 1);
  EXPECT_EQ(hello.replicas(0).pid(), pid);
  EXPECT_EQ(hello.replicas(0).generation(), 6);
  EXPECT_EQ(hello.replicas(0).ready().address(), "127.0.0.1:4711");
  EXPECT_EQ(kill(pid, 0), 0);
}

TEST_F(AgentTest, WaitsForAServiceThatIsNotThereYet) {
  service_.Close();
  auto agent = Agent::Start(Options());
  ASSERT_TRUE(agent.ok());
  EXPECT_FALSE((*agent)->connected());
  service_.Open();
  EXPECT_TRUE((*agent)->WaitConnected(60));
}

TEST_F(AgentTest, StopsWithoutAService) {
  StartAgent();
  service_.Start(Shell(1, "exec sleep 1000"));
  const int pid = AwaitPid(1);
  service_.Close();
  agent_->Stop(3600);
  EXPECT_TRUE(AwaitProcessEnd(pid));
}

}  // namespace
}  // namespace espalier
