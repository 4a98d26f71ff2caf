#include "trial_runner/agent/agent.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/protocol.h"
#include "tests/trial_runner/agent/agent_fixture.h"
#include "trial_runner/agent/processes/frames.h"

namespace espalier {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

v1::ReplicaMessage ReportOf(std::int64_t step) {
  v1::ReplicaMessage message;
  message.mutable_report()->set_step(step);
  message.mutable_report()->set_value(0.5);
  return message;
}

TEST_F(AgentTest, IntroducesItself) {
  StartAgent();
  EXPECT_TRUE(agent_->connected());
  const std::vector<v1::Hello> hellos = service_.hellos();
  ASSERT_EQ(hellos.size(), 1U);
  EXPECT_EQ(hellos[0].node_name(), "node-a");
  EXPECT_EQ(hellos[0].slots(), 4);
  EXPECT_EQ(hellos[0].token(), "secret");
  EXPECT_NE(hellos[0].incarnation(), "");
  EXPECT_EQ(service_.authorization(), "Bearer secret");
}

TEST_F(AgentTest, BeatsWithinItsLease) {
  StartAgent();
  EXPECT_TRUE(service_.AwaitHeartbeats(3));
}

// As it is where the network breaks before the first heartbeat has come.
TEST_F(AgentTest, DialsAgainWhereNoHeartbeatThatWasPromisedComes) {
  service_.PromiseHeartbeats();
  StartAgent();
  constexpr int kBeats = 100;  // of the agent, three each lease
  for (int i = 0; i < kBeats && service_.hellos().size() < 2; ++i) {
    ASSERT_TRUE(service_.AwaitHeartbeats(i));
  }
  EXPECT_GE(service_.hellos().size(), 2U);
}

TEST_F(AgentTest, RefusesZeroSlots) {
  AgentOptions options = Options();
  options.slots = 0;
  EXPECT_EQ(Agent::Start(options).status().message(), "agent: slots should be at least 1, got 0");
}

TEST_F(AgentTest, RefusesALeaseThatNobodyCouldKeep) {
  AgentOptions options = Options();
  options.replica_lease_s = 0.05;
  EXPECT_EQ(Agent::Start(options).status().message(),
            "agent: replica lease should be 0 (none) or 0.1 to 86400 seconds, got 0.05");
}

TEST_F(AgentTest, TellsStartExitCodeAndLastOutput) {
  StartAgent();
  service_.Start(Shell(1, "echo to out; echo to err >&2; exit 3"));
  const v1::ReplicaExited exited = service_.AwaitExit(1);
  EXPECT_EQ(exited.exit_code(), 3);
  EXPECT_EQ(exited.signal(), 0);
  EXPECT_EQ(exited.trial_id(), 31);
  EXPECT_EQ(exited.last_output(), "to out\nto err\n");
  EXPECT_EQ(exited.error(), "");
  const ScriptedService::Events events = service_.events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_GT(events[0].started().pid(), 0);
  EXPECT_EQ(events[0].sequence(), 1);
  EXPECT_EQ(events[1].sequence(), 2);
  EXPECT_EQ(ReadFile("agent/mnist/trial-2/replica-1.log"), "to out\nto err\n");
}

TEST_F(AgentTest, SendsNoMoreOfATrialsOutputThanTheProtocolAllows) {
  StartAgent();
  std::filesystem::create_directories(Path("agent/mnist/trial-2"));
  WriteFile("agent/mnist/trial-2/replica-1.log",
            std::string(static_cast<std::size_t>(kMaxTrialOutput_bytes) + 1, 'x'));
  v1::ServiceMessage asked;
  asked.mutable_read_output()->set_request(5);
  asked.mutable_read_output()->set_study("mnist");
  asked.mutable_read_output()->set_trial_number(2);
  asked.mutable_read_output()->set_max_bytes(2 * kMaxTrialOutput_bytes);
  service_.Send(asked);
  ASSERT_TRUE(
      service_.Await([](const ScriptedService::Events& events) { return !events.empty(); }));
  const v1::Output output = service_.events().front().output();
  EXPECT_EQ(output.request(), 5);
  EXPECT_EQ(std::ssize(output.text()), kMaxTrialOutput_bytes);
}

class AgentsFolders : public AgentTest {
 protected:
  // What the agent has of trial 2 of that study "mnist".
  std::string ReadOutput(std::int64_t request, const std::string& study_identity) {
    v1::ServiceMessage asked;
    asked.mutable_read_output()->set_request(request);
    asked.mutable_read_output()->set_study("mnist");
    asked.mutable_read_output()->set_study_identity(study_identity);
    asked.mutable_read_output()->set_trial_number(2);
    asked.mutable_read_output()->set_max_bytes(100);
    service_.Send(asked);
    std::string text;
    EXPECT_TRUE(service_.Await([&](const ScriptedService::Events& events) {
      for (const v1::AgentMessage& event : events) {
        if (event.output().request() != request) continue;
        text = event.output().text();
        return true;
      }
      return false;
    }));
    return text;
  }
};

TEST_F(AgentsFolders, AnotherStudyOfThatNameGetsNeitherItsCheckpointsNorItsOutput) {
  StartAgent();
  v1::StartReplica first = Shell(1, "echo first; touch $ESPALIER_CHECKPOINT_DIR/ck");
  first.set_study_identity("1-100");
  service_.Start(first);
  service_.AwaitExit(1);
  v1::StartReplica second = Shell(2, "ls $ESPALIER_CHECKPOINT_DIR; echo second");
  second.set_study_identity("2-200");
  service_.Start(second);
  EXPECT_EQ(service_.AwaitExit(2).last_output(), "second\n");
  EXPECT_EQ(ReadOutput(1, "1-100"), "first\n");
  EXPECT_EQ(ReadOutput(2, "2-200"), "second\n");
  first.set_replica_id(3);
  first.set_command(2, "ls $ESPALIER_CHECKPOINT_DIR");
  service_.Start(first);
  EXPECT_EQ(service_.AwaitExit(3).last_output(), "ck\n") << "a study that is resumed";
}

TEST_F(AgentTest, TellsWhyACommandDoesNotStart) {
  StartAgent();
  v1::StartReplica missing = Shell(1, "");
  missing.clear_command();
  missing.add_command("./train");
  service_.Start(missing);
  v1::ReplicaExited exited = service_.AwaitExit(1);
  EXPECT_EQ(exited.error(), "cannot start ./train: No such file or directory");
  EXPECT_EQ(exited.exit_code(), -1);
  EXPECT_FALSE(exited.node_at_fault());

  v1::StartReplica unknown = Shell(2, "");
  unknown.clear_command();
  unknown.add_command("no-such-program");
  service_.Start(unknown);
  EXPECT_THAT(service_.AwaitExit(2).error(),
              StartsWith("cannot start no-such-program: not found in PATH (/opt/espalier/bin:"));

  v1::StartReplica nowhere = Shell(3, "");
  nowhere.set_directory(Path("absent"));
  service_.Start(nowhere);
  EXPECT_EQ(service_.AwaitExit(3).error(),
            "cannot start /bin/sh in " + Path("absent") + ": No such file or directory");
  EXPECT_EQ(service_.events().size(), 3U);  // none was told as started
}

TEST_F(AgentTest, StartsNothingWhereTheReserveOfTheDiskIsTouched) {
  AgentOptions options = Options();
  options.disk_reserve_bytes = std::int64_t{1} << 60;
  agent_ = *Agent::Start(options);
  ASSERT_TRUE(agent_->WaitConnected(60));
  service_.Start(Shell(1, "exit 0"));
  const v1::ReplicaExited exited = service_.AwaitExit(1);
  EXPECT_TRUE(exited.node_at_fault());
  EXPECT_THAT(exited.error(), HasSubstr("less than the reserve of 1099511627776 MiB"));
  EXPECT_FALSE(std::filesystem::exists(Path("agent/mnist")));
}

TEST_F(AgentTest, KeepsBothEndsOfALongLog) {
  AgentOptions options = Options();
  options.max_log_bytes = 64 << 10;
  agent_ = *Agent::Start(options);
  ASSERT_TRUE(agent_->WaitConnected(60));
  service_.Start(Shell(1, "echo first; yes | head -c 300000; echo last"));
  EXPECT_THAT(service_.AwaitExit(1).last_output(), EndsWith("\nlast\n"));
  const std::string log = ReadFile("agent/mnist/trial-2/replica-1.log");
  EXPECT_LE(log.size(), 64U << 10);
  EXPECT_THAT(log, StartsWith("first\ny\n"));
  EXPECT_THAT(log, HasSubstr("left out"));
  EXPECT_THAT(log, EndsWith("y\nlast\n"));
}

TEST_F(AgentTest, TellsThatItsMachineLacksWhatATrialNeeds) {
  StartAgent();
  std::ofstream(Path("agent/mnist")) << "in place of the study's folder";
  service_.Start(Shell(1, "exit 0"));
  v1::ReplicaExited exited = service_.AwaitExit(1);
  EXPECT_TRUE(exited.node_at_fault());
  EXPECT_THAT(exited.error(), HasSubstr(Path("agent/mnist")));
  std::filesystem::remove(Path("agent/mnist"));

  service_.Start(Shell(2, "exit 0"));
  EXPECT_EQ(service_.AwaitExit(2).exit_code(), 0);
}

TEST_F(AgentTest, GivesEnvironmentAndParameterFile) {
  StartAgent();
  v1::StartReplica start = Shell(1, "env > env.txt; cat $ESPALIER_PARAMETERS; pwd");
  (*start.mutable_environment())["EXTRA"] = "from the study";
  start.set_checkpoint("/checkpoints/7");
  service_.Start(start);
  EXPECT_EQ(service_.AwaitExit(1).last_output(), start.parameters_json() + folder_.string() + "\n");
  const std::string environment = "\n" + ReadFile("env.txt");
  const std::string trial = Path("agent/mnist/trial-2");
  for (const std::string& line :
       {std::string("EXTRA=from the study"), std::string("ESPALIER_CONTROL_FD=3"),
        std::string("ESPALIER_TRIAL_ID=31"), std::string("ESPALIER_TRIAL_NUMBER=2"),
        std::string("ESPALIER_STUDY=mnist"), std::string("ESPALIER_REPLICA_ID=1"),
        std::string("ESPALIER_PARAM_LR=0.1"), std::string("ESPALIER_PARAM_RULE=adascale"),
        std::string("ESPALIER_NODE_ID=5"), std::string("ESPALIER_SLOT=1"),
        std::string("ESPALIER_CHECKPOINT=/checkpoints/7"),
        std::string("ESPALIER_HTTP=http://127.0.0.1:1"), "ESPALIER_SERVICE=" + service_.address(),
        "ESPALIER_PARAMETERS=" + trial + "/parameters.json",
        "ESPALIER_CHECKPOINT_DIR=" + trial + "/checkpoints"}) {
    EXPECT_THAT(environment, HasSubstr("\n" + line + "\n"));
  }
  EXPECT_THAT(environment, HasSubstr("\nPATH=/opt/espalier/bin:"));
  EXPECT_THAT(environment, HasSubstr("\nESPALIER_THREADS="));
  EXPECT_TRUE(std::filesystem::is_directory(trial + "/checkpoints"));
}

TEST_F(AgentTest, InheritsOnlyTheControlSocket) {
  StartAgent();
  service_.Start(Shell(1, "ls /proc/self/fd | tr '\\n' ' '; readlink /proc/$$/fd/0"));
  // The fifth is the folder that ls reads.
  EXPECT_EQ(service_.AwaitExit(1).last_output(), "0 1 2 3 4 /dev/null\n");
}

TEST_F(AgentTest, PassesOnMessagesWrittenJustBeforeTheEnd) {
  StartAgent();
  std::string frames;
  for (int step = 1; step <= 500; ++step) frames += Frame(ReportOf(step).SerializeAsString());
  WriteFile("frames", frames);
  service_.Start(Shell(1, "cat frames >&3; kill -9 $$"));
  EXPECT_EQ(service_.AwaitExit(1).signal(), SIGKILL);
  const ScriptedService::Events events = service_.events();
  ASSERT_EQ(events.size(), 502U);
  for (int step = 1; step <= 500; ++step) {
    const v1::FromReplica& from = events[static_cast<std::size_t>(step)].from_replica();
    ASSERT_EQ(from.message().report().step(), step);
    ASSERT_EQ(from.trial_id(), 31);
  }
  EXPECT_TRUE(events.back().has_exited());
}

TEST_F(AgentTest, CarriesCommandsToTheReplica) {
  StartAgent();
  v1::ServiceMessage message;
  message.mutable_to_replica()->set_replica_id(1);
  message.mutable_to_replica()->mutable_command()->mutable_regroup()->set_generation(9);
  const std::string frame = Frame(message.to_replica().command().SerializeAsString());
  service_.Start(Shell(1, "head -c " + std::to_string(frame.size()) + " <&3 > got"));
  service_.Send(message);
  EXPECT_EQ(service_.AwaitExit(1).exit_code(), 0);
  EXPECT_EQ(ReadFile("got"), frame);
}

TEST_F(AgentTest, KillsAReplicaThatSendsTooLargeAFrame) {
  StartAgent();
  service_.Start(Shell(1, R"(printf '\001\000\020\000' >&3; sleep 1000)"));
  const v1::ReplicaExited exited = service_.AwaitExit(1);
  EXPECT_EQ(exited.signal(), SIGKILL);
  EXPECT_EQ(exited.error(),
            "message of 1048577 bytes on the control socket: at most 1048576 are allowed");
}

v1::ReplicaMessage Heartbeat() {
  v1::ReplicaMessage message;
  message.mutable_heartbeat();
  return message;
}

TEST_F(AgentTest, EndsAReplicaWhoseProtocolItDoesNotSpeak) {
  StartAgent();
  v1::ReplicaMessage greeting;
  greeting.mutable_greeting()->set_protocol("99 98 9.9.9");
  WriteFrame("greeting", greeting);
  service_.Start(Shell(1, "cat greeting >&3; exec sleep 1000"));
  EXPECT_THAT(service_.AwaitExit(1).error(),
              StartsWith("the program of replica 1 speaks protocol 98 to 99 (release 9.9.9), this "
                         "agent speaks "));
  greeting.mutable_greeting()->set_protocol("99 1 9.9.9");
  WriteFrame("greeting", greeting);
  service_.Start(Shell(2, "cat greeting >&3; exit 3"));
  EXPECT_EQ(service_.AwaitExit(2).exit_code(), 3);
  // It is between the two alone.
  for (const v1::AgentMessage& event : service_.events()) EXPECT_FALSE(event.has_from_replica());
}

TEST_F(AgentTest, KillsAReplicaThatFallsSilent) {
  replica_lease_s_ = 0.3;
  StartAgent();
  WriteFrame("beat", Heartbeat());
  service_.Start(Shell(1, "cat beat >&3; exec sleep 1000"));
  const v1::ReplicaExited exited = service_.AwaitExit(1);
  EXPECT_EQ(exited.error(), "hung: not a word for 0.3 s");
  EXPECT_EQ(exited.signal(), SIGKILL);
  EXPECT_EQ(exited.exit_code(), -1);
  EXPECT_EQ(service_.events().size(), 2U) << "heartbeats are for the agent alone";
}

// The beginning of a script that beats until it ends: by several processes, since on a busy machine
// one of them may stand still for longer than a lease.
constexpr char kBeats[] =
    "cat beat up >&3; for i in 1 2 3 4; do "
    "while [ -e beat ]; do cat beat >&3; sleep 0.1; done & done; ";
// Its end: once there is a file.
constexpr char kGoes[] = "while [ ! -e go ]; do sleep 0.02; done; exit 3";

TEST_F(AgentTest, KillsAStoppedReplicaAndNotItsBeatingPeer) {
  replica_lease_s_ = 2;
  StartAgent();
  WriteFrame("up", ReportOf(1));
  WriteFrame("beat", Heartbeat());
  const std::string beating = std::string(kBeats) + kGoes;
  service_.Start(Shell(1, beating));
  service_.Start(Shell(2, beating));
  ASSERT_TRUE(AwaitMessage(1));
  ASSERT_TRUE(AwaitMessage(2));
  kill(-AwaitPid(1), SIGSTOP);
  EXPECT_THAT(service_.AwaitExit(1).error(), StartsWith("hung: not a word for 2.0 s"));
  WriteFile("go", "");
  EXPECT_EQ(service_.AwaitExit(2).exit_code(), 3);
}

TEST_F(AgentTest, KillsNobodyWhoNeverPromisedAHeartbeat) {
  replica_lease_s_ = 0.1;
  StartAgent();
  WriteFrame("up", ReportOf(1));
  WriteFrame("beat", Heartbeat());
  service_.Start(Shell(1, "while [ ! -e go ]; do sleep 0.02; done; exit 3"));
  service_.Start(Shell(2, "cat up >&3; while [ ! -e go ]; do sleep 0.02; done; exit 4"));
  ASSERT_TRUE(AwaitMessage(2));
  // When this one has been killed the other two have been silent for as long.
  service_.Start(Shell(3, "cat beat >&3; exec sleep 1000"));
  EXPECT_EQ(service_.AwaitExit(3).signal(), SIGKILL);
  WriteFile("go", "");
  EXPECT_EQ(service_.AwaitExit(1).exit_code(), 3);
  EXPECT_EQ(service_.AwaitExit(2).exit_code(), 4);
}

#ifndef ESPALIER_CALLS_IN_PROCESS  // its agent is another process

// The agent's own absence is not its replicas' silence.
TEST_F(AgentTest, AnAgentThatWasStoppedKillsNobodyWhenItWakes) {
  std::string address = service_.address();
  std::string directory = Path("held");
  std::string program = AGENT_HOLDER;
  std::string lease = "2";  // a busy machine may keep a replica from its word for half a second
  char* const arguments[] = {program.data(), address.data(), directory.data(), lease.data(),
                             nullptr};
  pid_t holder = 0;
  ASSERT_EQ(posix_spawn(&holder, AGENT_HOLDER, nullptr, nullptr, arguments, environ), 0);
  WriteFrame("up", ReportOf(1));
  WriteFrame("beat", Heartbeat());
  service_.Start(Shell(1, std::string(kBeats) +
                              "while [ ! -e stopped ]; do sleep 0.02; done; sleep 4.2; "
                              "touch beaten; " +
                              kGoes));
  ASSERT_TRUE(AwaitMessage(1));
  kill(holder, SIGSTOP);
  WriteFile("stopped", "");
  // More than two leases, by the replica's count.
  while (!std::filesystem::exists(Path("beaten"))) poll(nullptr, 0, 5);
  kill(holder, SIGCONT);
  WriteFile("go", "");
  const v1::ReplicaExited exited = service_.AwaitExit(1);
  EXPECT_EQ(exited.exit_code(), 3);
  EXPECT_EQ(exited.error(), "");
  kill(holder, SIGKILL);
  waitpid(holder, nullptr, 0);
}

#endif

TEST_F(AgentTest, NoticesAKilledReplica) {
  StartAgent();
  service_.Start(Shell(1, "exec sleep 1000"));
  kill(AwaitPid(1), SIGKILL);
  const v1::ReplicaExited exited = service_.AwaitExit(1);
  EXPECT_EQ(exited.exit_code(), -1);
  EXPECT_EQ(exited.signal(), SIGKILL);
}

TEST_F(AgentTest, StopsPolitelyFirst) {
  StartAgent();
  WriteFrame("up", ReportOf(1));
  service_.Start(
      Shell(1, "trap 'echo bye; exit 7' TERM; cat up >&3; while :; do sleep 0.01; done"));
  ASSERT_TRUE(AwaitMessage(1));
  service_.Stop(1, 3600);
  const v1::ReplicaExited exited = service_.AwaitExit(1);
  EXPECT_EQ(exited.exit_code(), 7);
  EXPECT_THAT(exited.last_output(), HasSubstr("bye\n"));
}

class StoppedElastic : public AgentTest {
 protected:
  void SetUp() override {
    StartAgent();
    v1::ReplicaMessage ready;
    ready.mutable_ready()->set_address("127.0.0.1:1");
    WriteFrame("ready", ready);
    WriteFrame("up", ReportOf(1));
  }
  // Is told to stop once it has reported.
  v1::ReplicaExited Stopped(std::int64_t replica_id, const std::string& script) {
    service_.Start(Shell(replica_id, script));
    EXPECT_TRUE(AwaitMessage(replica_id));
    pid_ = AwaitPid(replica_id);
    service_.Stop(replica_id, 3600);
    return service_.AwaitExit(replica_id);
  }

  int pid_ = 0;
};

TEST_F(StoppedElastic, IsKilledAndItsSlotFreeBeforeTheSystemIsDoneWithIt) {
  // A shell that starts something in the foreground blocks signals for a moment.
  const v1::ReplicaExited exited = Stopped(1, "echo training; cat ready up >&3 & exec sleep 1000");
  EXPECT_EQ(exited.signal(), SIGKILL) << "and not the end by SIGTERM, which is waited for";
  EXPECT_EQ(exited.exit_code(), -1);
  EXPECT_THAT(exited.last_output(), HasSubstr("training\n"));
  EXPECT_TRUE(AwaitProcessEnd(pid_));
  service_.Start(Shell(2, "exit 3"));
  EXPECT_EQ(service_.AwaitExit(2).exit_code(), 3) << "in its slot";
}

TEST_F(StoppedElastic, HasItsGraceWhereItDoesSomethingOnSigterm) {
  EXPECT_EQ(
      Stopped(1, "trap 'exit 7' TERM; cat ready up >&3; while :; do sleep 0.01; done").exit_code(),
      7);
}

TEST_F(StoppedElastic, APlainProgramIsWaitedFor) {
  EXPECT_EQ(Stopped(1, "cat up >&3; while :; do sleep 0.01; done").signal(), SIGTERM);
}

TEST_F(AgentTest, KillsWhoIgnoresSigterm) {
  StartAgent();
  WriteFrame("up", ReportOf(1));
  const std::string deaf = "trap '' TERM; cat up >&3; while :; do sleep 1; done";
  service_.Start(Shell(1, deaf));
  service_.Start(Shell(2, deaf));
  ASSERT_TRUE(AwaitMessage(1));
  ASSERT_TRUE(AwaitMessage(2));
  service_.Stop(1, 0.05);
  EXPECT_EQ(service_.AwaitExit(1).signal(), SIGKILL);
  service_.Stop(2, 0);
  EXPECT_EQ(service_.AwaitExit(2).signal(), SIGKILL);
}

TEST_F(AgentTest, KillsWhatAReplicaLeavesBehind) {
  StartAgent();
  service_.Start(Shell(1, "sleep 1000 & echo $!"));
  const v1::ReplicaExited exited = service_.AwaitExit(1);
  EXPECT_EQ(exited.exit_code(), 0);
  const int child = std::stoi(exited.last_output());
  EXPECT_TRUE(AwaitProcessEnd(child));
}

TEST_F(AgentTest, StartsAReplicaOnce) {
  StartAgent();
  const v1::StartReplica start = Shell(1, "echo run");
  service_.Start(start);
  service_.Start(start);
  service_.AwaitExit(1);
  service_.Start(start);  // its exit is not acknowledged
  service_.Acknowledge(1'000);
  service_.Start(start);         // it is now
  service_.Start(Shell(2, ""));  // all earlier commands have been obeyed when this one has
  service_.AwaitExit(2);
  EXPECT_EQ(service_.events().size(), 4U);
  EXPECT_EQ(ReadFile("agent/mnist/trial-2/replica-1.log"), "run\n");
}

TEST_F(AgentTest, StopEndsItsReplicasAndTellsSo) {
  StartAgent();
  WriteFrame("up", ReportOf(1));
  service_.Start(Shell(1, "trap 'exit 7' TERM; cat up >&3; while :; do sleep 0.01; done"));
  ASSERT_TRUE(AwaitMessage(1));
  agent_->Stop(3600);
  EXPECT_FALSE(agent_->connected());
  EXPECT_EQ(service_.AwaitExit(1).exit_code(), 7);
}

// PyTorch is a module here that waits until it is told to fail.
TEST_F(AgentTest, ReplicasThatWaitForAZygoteAreStoppedAndStarted) {
  ASSERT_EQ(mkfifo(Path("fail").c_str(), 0600), 0);
  WriteFile("torch.py", "open('" + Path("fail") + "').read()\nraise OSError('broken')\n");
  WriteFile("mine.py", "import sys\nprint('it ran')\nsys.exit(0)\n");
  StartAgent();
  v1::StartReplica start = Shell(1, "");
  (*start.mutable_environment())["PYTHONPATH"] =
      std::string(ESPALIER_PYTHON_PACKAGE) + ":" + folder_.string();
  start.mutable_command()->Clear();
  for (const char* word : {"python3", "-m", "espalier._call", "mine:f"}) start.add_command(word);
  service_.Start(start);
  start.set_replica_id(2);
  start.set_trial_id(32);
  service_.Start(start);
  service_.Stop(1, 60);
  const v1::ReplicaExited stopped = service_.AwaitExit(1);
  EXPECT_EQ(stopped.signal(), SIGTERM);
  EXPECT_EQ(stopped.error(), "");
  EXPECT_EQ(service_.events().size(), 1U) << "neither has been started";
  FileDescriptor(open(Path("fail").c_str(), O_WRONLY)).Close();  // once it is read
  const v1::ReplicaExited exited = service_.AwaitExit(2);
  EXPECT_EQ(exited.exit_code(), 0) << exited.last_output();
  EXPECT_EQ(exited.last_output(), "it ran\n");
}

#ifndef ESPALIER_CALLS_IN_PROCESS  // likewise

TEST_F(AgentTest, ReplicasDoNotOutliveTheAgentsProcess) {
  std::string address = service_.address();
  std::string directory = Path("held");
  std::string program = AGENT_HOLDER;
  char* const arguments[] = {program.data(), address.data(), directory.data(), nullptr};
  pid_t holder = 0;
  ASSERT_EQ(posix_spawn(&holder, AGENT_HOLDER, nullptr, nullptr, arguments, environ), 0);
  service_.Start(Shell(1, "exec sleep 1000"));
  const int replica = AwaitPid(1);
  ASSERT_GT(replica, 0);
  EXPECT_EQ(kill(replica, 0), 0);
  kill(holder, SIGKILL);
  EXPECT_TRUE(AwaitProcessEnd(replica));
  waitpid(holder, nullptr, 0);
}

#endif

}  // namespace
}  // namespace espalier
