// Replicas that park instead of exiting, as an agent with memory for spares treats them.

#include <gmock/gmock.h>
#include <signal.h>

#include "tests/trial_runner/agent/agent_fixture.h"
#include "trial_runner/agent/processes/frames.h"

namespace espalier {
namespace {

constexpr std::int64_t kTrial = 40;

v1::ReplicaCommand AdoptAs(std::int64_t replica_id) {
  v1::ReplicaCommand command;
  command.mutable_adopt()->set_replica_id(replica_id);
  command.mutable_adopt()->set_checkpoint("/c/7.pt");
  return command;
}

class Spares : public AgentTest {
 protected:
  void StartAgentWithMemory(std::int64_t bytes) {
    spare_memory_bytes_ = bytes;
    StartAgent();
    v1::ReplicaMessage message;
    message.mutable_parked();
    WriteFrame("parked", message);
    message.mutable_report()->set_step(1);
    WriteFrame("report", message);
    message.mutable_finished();
    WriteFrame("finished", message);
  }

  // Parks, and when it has been adopted reports and ends with code 5.
  v1::StartReplica Parker(std::int64_t replica_id) const {
    const std::size_t bytes = Frame(AdoptAs(replica_id).SerializeAsString()).size();
    v1::StartReplica start =
        Shell(replica_id, "echo up; cat parked >&3; head -c " + std::to_string(bytes) +
                              " <&3 > got; echo adopted; cat report >&3; exit 5");
    start.set_trial_id(kTrial);
    return start;
  }

  // The next one of the trial of Parker(1), in another slot.
  v1::StartReplica Next(std::int64_t replica_id) const {
    v1::StartReplica start = Parker(1);
    start.set_replica_id(replica_id);
    start.set_slot(3);
    start.set_checkpoint("/c/7.pt");
    start.set_token("of-replica-" + std::to_string(replica_id));
    return start;
  }

  int StartAndAwaitParked(const v1::StartReplica& start) {
    service_.Start(start);
    const int pid = AwaitPid(start.replica_id());
    const v1::ReplicaExited exited = service_.AwaitExit(start.replica_id());
    EXPECT_EQ(exited.exit_code(), 0);
    EXPECT_EQ(exited.signal(), 0);
    EXPECT_EQ(exited.last_output(), "up\n");
    return pid;
  }
};

TEST_F(Spares, AParkedReplicaIsTheTrialsNextOne) {
  StartAgentWithMemory(std::int64_t{1} << 30);
  const int pid = StartAndAwaitParked(Parker(1));
  service_.Start(Next(2));
  const v1::ReplicaExited exited = service_.AwaitExit(2);
  EXPECT_EQ(exited.exit_code(), 5);
  EXPECT_EQ(exited.last_output(), "up\nadopted\n");
  EXPECT_EQ(AwaitPid(2), pid) << "no process was started";
  EXPECT_TRUE(AwaitMessage(2)) << "what it says counts as the new replica's";
  for (const v1::AgentMessage& event : service_.events()) {
    EXPECT_NE(event.from_replica().replica_id(), 1);
  }
  EXPECT_EQ(ReadFile("got"), Frame(AdoptAs(2).SerializeAsString()));
  EXPECT_EQ(ReadFile("agent/mnist/trial-2/replica-2.log"), "up\nadopted\n");
}

TEST_F(Spares, AnotherTrialOrProgramDoesNotGetIt) {
  StartAgentWithMemory(std::int64_t{1} << 30);
  const int pid = StartAndAwaitParked(Parker(1));
  v1::StartReplica other_trial = Next(2);
  other_trial.set_trial_id(kTrial + 1);
  EXPECT_NE(StartAndAwaitParked(other_trial), pid);
  v1::StartReplica other_parameters = Next(3);
  other_parameters.set_parameters_json(R"({"lr":0.2})");
  EXPECT_NE(StartAndAwaitParked(other_parameters), pid);
  service_.Start(Next(4));
  EXPECT_EQ(service_.AwaitExit(4).exit_code(), 5);
  EXPECT_EQ(AwaitPid(4), pid) << "it has waited for its own";
}

TEST_F(Spares, WithoutMemoryItEnds) {
  StartAgentWithMemory(0);
  EXPECT_TRUE(AwaitProcessEnd(StartAndAwaitParked(Parker(1))));
}

TEST_F(Spares, TooLargeForTheMemoryItEnds) {
  StartAgentWithMemory(1);
  EXPECT_TRUE(AwaitProcessEnd(StartAndAwaitParked(Parker(1))));
}

TEST_F(Spares, EndWithTheirTrial) {
  StartAgentWithMemory(std::int64_t{1} << 30);
  const int first = StartAndAwaitParked(Parker(1));
  v1::StartReplica last = Shell(2, "cat finished >&3");
  last.set_trial_id(kTrial);
  service_.Start(last);
  service_.AwaitExit(2);
  EXPECT_TRUE(AwaitProcessEnd(first));

  const int second = StartAndAwaitParked(Parker(3));
  v1::StartReplica stopped = Shell(4, "exec sleep 1000");
  stopped.set_trial_id(kTrial);
  service_.Start(stopped);
  service_.Stop(4, 0);
  EXPECT_TRUE(AwaitProcessEnd(second));
}

TEST_F(Spares, EndWithTheAgent) {
  StartAgentWithMemory(std::int64_t{1} << 30);
  const int pid = StartAndAwaitParked(Parker(1));
  agent_->Stop(3600);
  EXPECT_TRUE(AwaitProcessEnd(pid));
}

TEST_F(Spares, ADeadOneIsReplacedByAProcess) {
  StartAgentWithMemory(std::int64_t{1} << 30);
  const int pid = StartAndAwaitParked(Parker(1));
  kill(pid, SIGKILL);
  ASSERT_TRUE(AwaitProcessEnd(pid));
  EXPECT_NE(StartAndAwaitParked(Next(2)), pid);
}

TEST_F(Spares, ASpareThatHangsIsEnded) {
  replica_lease_s_ = 0.2;
  v1::ReplicaMessage beat;
  beat.mutable_heartbeat();
  WriteFrame("beat", beat);
  StartAgentWithMemory(std::int64_t{1} << 30);
  // In one piece: whatever lies between the two is silence.
  v1::StartReplica start = Shell(1, "cat beat parked > both; cat both >&3; exec sleep 1000");
  service_.Start(start);
  EXPECT_EQ(service_.AwaitExit(1).error(), "");
  EXPECT_TRUE(AwaitProcessEnd(AwaitPid(1)));
}

}  // namespace
}  // namespace espalier
