// A scripted agent on the real stream of a real service.

#include <memory>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "tests/api/direct_tuner.h"
#include "tests/server/running_service.h"

namespace espalier {
namespace {

using testing::HasSubstr;

v1::AgentMessage Started(const v1::StartReplica& start, int pid) {
  v1::AgentMessage message;
  message.mutable_started()->set_replica_id(start.replica_id());
  message.mutable_started()->set_trial_id(start.trial_id());
  message.mutable_started()->set_pid(pid);
  return message;
}

v1::AgentMessage Finished(const v1::StartReplica& start, double value) {
  v1::AgentMessage message;
  message.mutable_from_replica()->set_replica_id(start.replica_id());
  message.mutable_from_replica()->mutable_message()->mutable_finished()->set_value(value);
  return message;
}

v1::AgentMessage Exited(const v1::StartReplica& start) {
  v1::AgentMessage message;
  message.mutable_exited()->set_replica_id(start.replica_id());
  message.mutable_exited()->set_trial_id(start.trial_id());
  return message;
}

v1::Pool PoolOf(RunningService& running) {
  grpc::ClientContext context;
  v1::Pool pool;
  EXPECT_TRUE(running.stub->GetPool(&context, {}, &pool).ok());
  return pool;
}

// Blocks until the pool shows the node connected or not; the test's time limit ends a lost wait.
void AwaitConnected(RunningService& running, bool connected) {
  while (true) {
    const v1::Pool pool = PoolOf(running);
    if (pool.nodes_size() == 1 && pool.nodes(0).connected() == connected) return;
    std::this_thread::yield();
  }
}

TEST(AgentStream, PlaysATrialToItsEnd) {
  RunningService running;
  ASSERT_TRUE(running.Create(CreateRequest()).ok());
  ScriptedAgent agent(running, "oak", 1, "run-1");
  const v1::ServiceMessage welcome = agent.Next();
  ASSERT_TRUE(welcome.has_welcome());
  EXPECT_GT(welcome.welcome().node_id(), 0);
  EXPECT_EQ(welcome.welcome().lease_s(), RunningService::kLease_s);
  EXPECT_EQ(ServiceOptions().lease_s, 10);

  const v1::StartReplica start = agent.AwaitStart();
  EXPECT_EQ(start.study(), "mnist");
  EXPECT_EQ(start.trial_number(), 0);
  EXPECT_THAT(start.command(), testing::ElementsAre("/bin/true", "--fast"));
  EXPECT_THAT(start.parameters_json(), HasSubstr("\"lr\""));
  EXPECT_EQ(start.environment().at("ESPALIER_BATCH_MODE"), "fixed");

  agent.AwaitAcknowledge(agent.Say(Started(start, 4711)));
  EXPECT_EQ(PoolOf(running).nodes(0).holders(0).pid(), 4711);
  agent.AwaitAcknowledge(agent.Report(start.replica_id(), 1, 0.5));
  v1::StudyDetails details;
  ASSERT_TRUE(running.Get("mnist", &details).ok());
  EXPECT_EQ(details.trials(0).state(), v1::TRIAL_RUNNING);
  ASSERT_EQ(details.trials(0).values_size(), 1);

  agent.Say(Finished(start, 0.25));
  agent.AwaitAcknowledge(agent.Say(Exited(start)));
  ASSERT_TRUE(running.Get("mnist", &details).ok());
  EXPECT_EQ(details.trials(0).state(), v1::TRIAL_COMPLETE);
  EXPECT_EQ(details.trials(0).value(), 0.25);
  EXPECT_EQ(details.study().best_trial(), 0);
}

v1::Hello HelloOf(const std::string& node, const std::string& shared_folder = "") {
  v1::Hello hello;
  hello.set_node_name(node);
  hello.set_slots(1);
  hello.set_incarnation("run-of-" + node);
  hello.mutable_checkpoints();
  hello.set_shared_folder(shared_folder);
  return hello;
}

TEST(AgentStream, ACopyIsOrderedWithATicketThatItsHolderKnows) {
  RunningService running;
  ASSERT_TRUE(running.Create(CreateRequest()).ok());
  ScriptedAgent holder(running, HelloOf("oak"));
  const v1::StartReplica start = holder.AwaitStart();
  v1::AgentMessage opened;
  opened.mutable_checkpoint_server()->set_address("10.0.0.1:7");
  opened.mutable_checkpoint_server()->set_certificate("PEM");
  holder.Say(opened);
  v1::AgentMessage saved;
  saved.mutable_from_replica()->set_replica_id(start.replica_id());
  v1::CheckpointSaved& checkpoint =
      *saved.mutable_from_replica()->mutable_message()->mutable_checkpoint();
  checkpoint.set_path("/oak/step-7.pt");
  checkpoint.set_step(7);
  checkpoint.set_name("step-7.pt");
  checkpoint.set_fingerprint("print");
  holder.AwaitAcknowledge(holder.Say(saved));
  ScriptedAgent other(running, HelloOf("elm"));
  const v1::CopyCheckpoint copy =
      other.Await([](const auto& message) { return message.has_copy(); }).copy();
  EXPECT_EQ(copy.study(), "mnist");
  EXPECT_EQ(copy.from().fingerprint(), "print");
  ASSERT_EQ(copy.from().sources_size(), 1);
  EXPECT_EQ(copy.from().sources(0).node(), "oak");
  EXPECT_EQ(copy.from().sources(0).address(), "10.0.0.1:7");
  EXPECT_EQ(copy.from().sources(0).certificate(), "PEM");
  const v1::AllowRead allowed =
      holder.Await([](const auto& message) { return message.has_allow_read(); }).allow_read();
  EXPECT_EQ(allowed.ticket(), copy.from().sources(0).ticket());
  EXPECT_EQ(allowed.ticket().size(), 32u);
  EXPECT_EQ(allowed.name(), "step-7.pt");
  v1::AgentMessage copied;
  copied.mutable_copied()->set_trial_id(copy.trial_id());
  copied.mutable_copied()->set_name("step-7.pt");
  copied.mutable_copied()->set_fingerprint("print");
  copied.mutable_copied()->set_step(7);
  other.AwaitAcknowledge(other.Say(copied));
  v1::StudyDetails details;
  ASSERT_TRUE(running.Get("mnist", &details).ok());
  EXPECT_THAT(details.trials(0).checkpoint_nodes(), testing::ElementsAre("oak", "elm"));
}

v1::AgentMessage Ready(const v1::StartReplica& start) {
  v1::AgentMessage message;
  message.mutable_from_replica()->set_replica_id(start.replica_id());
  v1::Ready& ready = *message.mutable_from_replica()->mutable_message()->mutable_ready();
  ready.set_address("127.0.0.1:9");
  ready.mutable_batch()->set_initial_batch_size(1);
  ready.mutable_batch()->set_max_batch_size(1);
  ready.mutable_batch()->set_min_atomic_batch_size(1);
  ready.mutable_batch()->set_max_atomic_batch_size(1);
  return message;
}

v1::Regroup AwaitRegroup(ScriptedAgent& agent) {
  return agent.Await([](const auto& message) { return message.has_to_replica(); })
      .to_replica()
      .command()
      .regroup();
}

TEST(AgentStream, MembersGetASecretOfTheirGeneration) {
  RunningService running;
  ASSERT_TRUE(running.Create(CreateRequest()).ok());
  v1::Hello hello;
  hello.set_node_name("oak");
  hello.set_slots(1);
  hello.set_incarnation("run-1");
  v1::Regroup first;
  {
    ScriptedAgent agent(running, hello);
    const v1::StartReplica start = agent.AwaitStart();
    agent.Say(Started(start, 4711));
    agent.Say(Ready(start));
    first = AwaitRegroup(agent);
    v1::LiveReplica& live = *hello.add_replicas();
    live.set_replica_id(start.replica_id());
    live.set_trial_id(start.trial_id());
    live.set_slot(start.slot());
    *live.mutable_ready() = Ready(start).from_replica().message().ready();
  }
  ASSERT_EQ(first.members_size(), 1);
  EXPECT_EQ(first.secret().size(), 64u);
  // The word may have been lost: there is another group, of the same members.
  AwaitConnected(running, false);
  ScriptedAgent again(running, hello);
  const v1::Regroup second = AwaitRegroup(again);
  EXPECT_EQ(second.generation(), first.generation() + 1);
  EXPECT_EQ(second.secret().size(), 64u);
  EXPECT_NE(second.secret(), first.secret());
}

TEST(AgentStream, AFolderThatIsNotSharedIsRefused) {
  RunningService running;
  ScriptedAgent first(running, HelloOf("oak", "one mark"));
  ASSERT_TRUE(first.Next().has_welcome());
  ScriptedAgent second(running, HelloOf("elm", "another"));
  EXPECT_EQ(second.Next().kind_case(), v1::ServiceMessage::KIND_NOT_SET);
  const grpc::Status status = second.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_THAT(status.error_message(), HasSubstr("is not the folder of node oak"));
}

TEST(AgentStream, RefusesASecondAgentOfTheName) {
  RunningService running;
  ScriptedAgent first(running, "oak", 1, "run-1");
  ASSERT_TRUE(first.Next().has_welcome());
  ScriptedAgent second(running, "oak", 1, "run-2");
  EXPECT_EQ(second.Next().kind_case(), v1::ServiceMessage::KIND_NOT_SET);
  const grpc::Status status = second.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_THAT(status.error_message(), HasSubstr("\"oak\""));
  EXPECT_TRUE(PoolOf(running).nodes(0).connected());
}

TEST(AgentStream, TheSameAgentDiallingAgainTakesItsPlace) {
  RunningService running;
  ScriptedAgent first(running, "oak", 1, "run-1");
  ASSERT_TRUE(first.Next().has_welcome());
  ScriptedAgent again(running, "oak", 1, "run-1");
  ASSERT_TRUE(again.Next().has_welcome());
  EXPECT_EQ(first.Next().kind_case(), v1::ServiceMessage::KIND_NOT_SET);
  first.Finish();
  // The end of the old stream must not take the node away from the new one.
  ASSERT_TRUE(running.Create(CreateRequest()).ok());
  EXPECT_EQ(again.AwaitStart().study(), "mnist");
  EXPECT_TRUE(PoolOf(running).nodes(0).connected());
}

TEST(AgentStream, ABrokenStreamDisconnectsTheNodeAndANewRunMayCome) {
  RunningService running;
  ScriptedAgent agent(running, "oak", 1, "run-1");
  ASSERT_TRUE(agent.Next().has_welcome());
  AwaitConnected(running, true);
  agent.Cancel();
  AwaitConnected(running, false);
  ScriptedAgent next(running, "oak", 1, "run-2");
  EXPECT_TRUE(next.Next().has_welcome());
  AwaitConnected(running, true);
}

// On a busy machine before it is welcome, too: it dials again.
TEST(AgentStream, ASilentAgentIsCutOff) {
  ServiceOptions options;
  options.lease_s = 0.1;
  RunningService running(options);
  bool was_welcome = false;
  for (int tries = 0; !was_welcome && tries < 100; ++tries) {
    ScriptedAgent agent(running, "oak", 1, "run-1");
    was_welcome = agent.Next().has_welcome();
    EXPECT_EQ(agent.Next().kind_case(), v1::ServiceMessage::KIND_NOT_SET);
  }
  EXPECT_TRUE(was_welcome);
}

// Each of which it answers. One that was silent all the same, on a busy machine, dials again.
TEST(AgentStream, IsSentHeartbeatsWhileItTalks) {
  ServiceOptions options;
  options.lease_s = 0.1;
  RunningService running(options);
  v1::AgentMessage hello;
  *hello.mutable_hello() = HelloOf("oak");
  v1::AgentMessage answer;
  answer.mutable_heartbeat();
  for (int beats = 0; beats < 4;) {
    grpc::ClientContext context;
    const AgentConnection stream = running.stub->Agent(&context);
    stream->Write(hello);
    v1::ServiceMessage message;
    while (beats < 4 && stream->Read(&message)) {
      if (message.has_welcome()) {
        EXPECT_TRUE(message.welcome().sends_heartbeats());
      }
      if (!message.has_heartbeat()) continue;
      ++beats;
      stream->Write(answer);
    }
    Break(context, stream);
    stream->Finish();
  }
}

TEST(AgentStream, AResentEventIsAcknowledgedAgainAndCountsOnce) {
  RunningService running;
  ASSERT_TRUE(running.Create(CreateRequest()).ok());
  std::int64_t replica = 0;
  {
    ScriptedAgent agent(running, "oak", 1, "run-1");
    replica = agent.AwaitStart().replica_id();
    agent.AwaitAcknowledge(agent.Report(replica, 1, 0.5));
  }
  ScriptedAgent again(running, "oak", 1, "run-1");
  ASSERT_TRUE(again.Next().has_welcome());
  again.AwaitAcknowledge(again.Report(replica, 1, 0.5));
  v1::StudyDetails details;
  ASSERT_TRUE(running.Get("mnist", &details).ok());
  EXPECT_EQ(details.trials(0).values_size(), 1);
}

TEST(AgentStream, MoreAgentsThanThereAreThreads) {
  constexpr int kAgents = 600;
  RunningService running;
  std::vector<std::unique_ptr<ScriptedAgent>> agents;
  for (int i = 0; i < kAgents; ++i) {
    agents.push_back(
        std::make_unique<ScriptedAgent>(running, "node-" + std::to_string(i), 1, "run-1"));
  }
  for (const auto& agent : agents) EXPECT_TRUE(agent->Next().has_welcome());
  EXPECT_EQ(PoolOf(running).nodes_size(), kAgents) << "and calls are still answered";
}

// Far more than the service takes before it stops reading: all of it is taken in the end.
TEST(AgentStream, TakesEveryEventOfAnAgentThatSaysMuchAtOnce) {
  RunningService running;
  ASSERT_TRUE(running.Create(CreateRequest()).ok());
  ScriptedAgent agent(running, "oak", 1, "run-1");
  const std::int64_t replica = agent.AwaitStart().replica_id();
  std::int64_t last = 0;
  for (int step = 1; step <= 1000; ++step) last = agent.Report(replica, step, 0.5);
  agent.AwaitAcknowledge(last);
  v1::StudyDetails details;
  ASSERT_TRUE(running.Get("mnist", &details).ok());
  EXPECT_EQ(details.trials(0).values_size(), 1000);
}

TEST(AgentStream, RefusesWhoDoesNotSayHello) {
  RunningService running;
  grpc::ClientContext context;
  const auto stream = running.stub->Agent(&context);
  v1::AgentMessage message;
  message.mutable_heartbeat();
  stream->Write(message);
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(AgentStream, ShutdownEndsTheStream) {
  RunningService running;
  ScriptedAgent agent(running, "oak", 1, "run-1");
  ASSERT_TRUE(agent.Next().has_welcome());
  running.service->Shutdown();
  EXPECT_EQ(agent.Next().kind_case(), v1::ServiceMessage::KIND_NOT_SET);
}

}  // namespace
}  // namespace espalier
