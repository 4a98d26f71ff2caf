#include "tuner/api/agent_convert.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace espalier {
namespace {

using testing::HasSubstr;

v1::AgentMessage FromReplicaMessage(std::int64_t replica) {
  v1::AgentMessage message;
  message.mutable_from_replica()->set_replica_id(replica);
  message.mutable_from_replica()->set_trial_id(1);
  return message;
}

template <typename E>
E EventOf(const v1::AgentMessage& message) {
  const auto converted = FromProto(message);
  EXPECT_TRUE(converted.ok()) << converted.status();
  const E* event = std::get_if<E>(&converted->event.value());
  EXPECT_NE(event, nullptr);
  return *event;
}

void SetBatch(v1::Ready& ready) {
  ready.mutable_batch()->set_initial_batch_size(32);
  ready.mutable_batch()->set_max_batch_size(256);
  ready.mutable_batch()->set_min_atomic_batch_size(4);
  ready.mutable_batch()->set_max_atomic_batch_size(64);
  ready.mutable_batch()->set_accumulation(true);
  ready.mutable_batch()->set_max_unsplit_batch_size(16);
}

TEST(AgentConvert, TakesHelloWithLiveReplicasAndTheirPids) {
  v1::AgentMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_node_name("oak");
  hello.set_slots(4);
  v1::LiveReplica& live = *hello.add_replicas();
  live.set_replica_id(7);
  live.set_trial_id(3);
  live.set_slot(2);
  live.set_generation(5);
  live.set_pid(4711);
  live.mutable_ready()->set_address("127.0.0.1:1");
  SetBatch(*live.mutable_ready());

  const auto converted = FromProto(message);
  ASSERT_TRUE(converted.ok()) << converted.status();
  ASSERT_EQ(converted->pids.size(), 1u);
  EXPECT_EQ(converted->pids[0].pid, 4711);
  const auto& event = std::get<AgentHello>(converted->event.value());
  EXPECT_EQ(event.node_name, "oak");
  EXPECT_EQ(event.slots, 4);
  ASSERT_EQ(event.replicas.size(), 1u);
  EXPECT_EQ(event.replicas[0].replica, ReplicaId(7));
  EXPECT_EQ(event.replicas[0].generation, 5);
  ASSERT_TRUE(event.replicas[0].ready);
  EXPECT_EQ(event.replicas[0].ready->batch, (BatchBounds{32, 256, 4, 64, true, 16}));
  EXPECT_EQ(event.replicas[0].ready->replica, ReplicaId(7));
}

TEST(AgentConvert, RefusesHelloWithoutNameOrSlots) {
  v1::AgentMessage message;
  message.mutable_hello()->set_slots(1);
  EXPECT_TRUE(absl::IsInvalidArgument(FromProto(message).status()));
  message.mutable_hello()->set_node_name("oak");
  EXPECT_TRUE(FromProto(message).ok());
  message.mutable_hello()->set_slots(0);
  EXPECT_THAT(std::string(FromProto(message).status().message()), HasSubstr("got 0"));
  message.mutable_hello()->set_slots(kMaxSlotsPerNode + 1);
  EXPECT_TRUE(absl::IsInvalidArgument(FromProto(message).status()));
}

TEST(AgentConvert, RefusesReadyWithImpossibleBatch) {
  v1::AgentMessage message = FromReplicaMessage(9);
  v1::Ready& ready = *message.mutable_from_replica()->mutable_message()->mutable_ready();
  SetBatch(ready);
  EXPECT_EQ(EventOf<ReplicaReady>(message).batch.initial, 32);
  ready.mutable_batch()->set_min_atomic_batch_size(65);
  const absl::Status status = FromProto(message).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("replica 9"));
}

TEST(AgentConvert, TakesProgressWithItsProfile) {
  v1::AgentMessage message = FromReplicaMessage(9);
  v1::Progress& progress = *message.mutable_from_replica()->mutable_message()->mutable_progress();
  progress.set_epoch(1.5);
  progress.set_gradient_sqr(2);
  progress.set_gradient_var(3);
  v1::ProfileEntry& entry = *progress.add_profile();
  entry.set_nodes(1);
  entry.set_replicas(2);
  entry.set_atomic_batch_size(16);
  entry.set_accumulation_count(3);
  entry.set_accumulation_time_s(0.25);
  entry.set_optimizer_count(4);
  entry.set_optimizer_time_s(0.5);
  entry.set_sync_time_s(0.125);

  const auto event = EventOf<ReplicaProgress>(message);
  EXPECT_EQ(event.noise.sqr, 2);
  EXPECT_EQ(event.noise.var, 3);
  EXPECT_EQ(event.epoch, 1.5);
  ASSERT_EQ(event.profile.size(), 1u);
  const ProfileKey key{1, 2, 16};
  EXPECT_EQ(event.profile[0].key, key);
  EXPECT_EQ(event.profile[0].accumulation_count, 3);
  EXPECT_EQ(event.profile[0].accumulation_time_s, 0.25);
  EXPECT_EQ(event.profile[0].optimizer_count, 4);
  EXPECT_EQ(event.profile[0].optimizer_time_s, 0.5);
  EXPECT_EQ(event.profile[0].sync_time_s, 0.125);
}

TEST(AgentConvert, TakesWhatATrialTellsOfItself) {
  v1::AgentMessage message = FromReplicaMessage(9);
  v1::Progress& progress = *message.mutable_from_replica()->mutable_message()->mutable_progress();
  progress.set_generation(3);
  v1::ReplicaTime& time = *progress.add_replica_times();
  time.set_replica_id(7);
  time.set_steps(20);
  time.set_compute_time_s(0.5);
  progress.set_goodput(100);
  progress.set_memory_bytes(1000);
  progress.set_device_memory_bytes(2000);
  progress.set_skipped_steps(4);
  progress.set_loss_scale(512);

  const auto event = EventOf<ReplicaProgress>(message);
  EXPECT_EQ(event.generation, 3);
  ASSERT_EQ(event.replica_times.size(), 1u);
  EXPECT_EQ(event.replica_times[0].replica, ReplicaId(7));
  EXPECT_EQ(event.replica_times[0].steps, 20);
  EXPECT_EQ(event.replica_times[0].compute_time_s, 0.5);
  EXPECT_EQ(event.goodput, 100);
  EXPECT_EQ(event.memory_bytes, 1000);
  EXPECT_EQ(event.device_memory_bytes, 2000);
  EXPECT_EQ(event.skipped_steps, 4);
  EXPECT_EQ(event.loss_scale, 512);
}

TEST(AgentConvert, TakesThePartsOfAPause) {
  v1::AgentMessage message = FromReplicaMessage(9);
  v1::Regrouped& regrouped =
      *message.mutable_from_replica()->mutable_message()->mutable_regrouped();
  regrouped.set_pause_s(0.5);
  regrouped.set_form_s(0.25);
  regrouped.set_broadcast_s(0.125);
  const auto event = EventOf<ReplicaRegrouped>(message);
  EXPECT_EQ(event.pause_s, 0.5);
  EXPECT_EQ(event.form_s, 0.25);
  EXPECT_EQ(event.broadcast_s, 0.125);
}

TEST(AgentConvert, TakesStuck) {
  v1::AgentMessage message = FromReplicaMessage(9);
  v1::Stuck& stuck = *message.mutable_from_replica()->mutable_message()->mutable_stuck();
  stuck.set_generation(4);
  stuck.set_waited_s(10);
  EXPECT_EQ(EventOf<ReplicaStuck>(message).replica, ReplicaId(9));
  EXPECT_EQ(EventOf<ReplicaStuck>(message).generation, 4);
  EXPECT_EQ(EventOf<ReplicaStuck>(message).waited_s, 10);
}

TEST(AgentConvert, FinishedHasAValueOnlyWhereOneWasSent) {
  v1::AgentMessage message = FromReplicaMessage(9);
  auto& finished = *message.mutable_from_replica()->mutable_message()->mutable_finished();
  EXPECT_EQ(EventOf<ReplicaFinished>(message).value, std::nullopt);
  finished.set_value(0);
  EXPECT_EQ(EventOf<ReplicaFinished>(message).value, 0.0);
  EXPECT_EQ(EventOf<ReplicaFinished>(message).failure, "");
  finished.set_failure("the loss is not finite");
  EXPECT_EQ(EventOf<ReplicaFinished>(message).failure, "the loss is not finite");
}

TEST(AgentConvert, HeartbeatsAndEmptyMessagesAreNoEvents) {
  v1::AgentMessage message;
  EXPECT_FALSE(FromProto(message)->event);
  message.mutable_heartbeat();
  EXPECT_FALSE(FromProto(message)->event);
  EXPECT_FALSE(FromProto(FromReplicaMessage(1))->event);
}

TEST(AgentConvert, FillsStartReplicaFromTheState) {
  TunerState state;
  Study& study = state.studies[StudyId(1)];
  study.id = StudyId(1);
  study.spec.name = "mnist";
  study.spec.command = {"train", "--fast"};
  study.spec.environment = {{"OMP_NUM_THREADS", "1"}};
  study.spec.directory = "/work";
  study.spec.batch_mode = BatchMode::kAdaptive;
  Trial& trial = state.trials[TrialId(4)];
  trial.id = TrialId(4);
  trial.study = StudyId(1);
  trial.number = 3;
  trial.parameters = {{"lr", 0.5}, {"batch_size", std::int64_t{32}}};
  trial.checkpoint = "/runs/3.pt";

  const Command command = StartReplicaCommand{NodeId(2), ReplicaId(8), TrialId(4), 1};
  EXPECT_EQ(NodeOf(command), NodeId(2));
  const v1::ServiceMessage message = ToProto(command, state);
  const v1::StartReplica& start = message.start();
  EXPECT_EQ(start.replica_id(), 8);
  EXPECT_EQ(start.trial_id(), 4);
  EXPECT_EQ(start.slot(), 1);
  EXPECT_THAT(start.command(), testing::ElementsAre("train", "--fast"));
  EXPECT_EQ(start.directory(), "/work");
  EXPECT_EQ(start.environment().at("OMP_NUM_THREADS"), "1");
  EXPECT_EQ(start.environment().at("ESPALIER_BATCH_MODE"), "adaptive");
  EXPECT_EQ(start.environment().at("ESPALIER_DIRECTION"), "minimize");
  EXPECT_EQ(start.parameters_json(), ToJson(trial.parameters));
  EXPECT_EQ(start.study(), "mnist");
  EXPECT_EQ(start.trial_number(), 3);
  EXPECT_EQ(start.checkpoint(), "/runs/3.pt");
}

TEST(AgentConvert, AnEnqueuedTrialHasItsOwnEnvironmentAndItsParametersToTheLetter) {
  TunerState state;
  state.studies[StudyId(1)].spec.environment = {{"A", "study"}, {"B", "study"}};
  Trial& trial = state.trials[TrialId(4)];
  trial.study = StudyId(1);
  trial.parameters = {{"lr", 0.5}};
  trial.attributes.system = {{kTrialEnvironment, R"({"A": "trial", "number": 3})"},
                             {kTrialParameters, R"({"lr": 5e-1})"}};
  const Command command = StartReplicaCommand{NodeId(2), ReplicaId(8), TrialId(4), 1};
  const v1::ServiceMessage message = ToProto(command, state);
  EXPECT_EQ(message.start().environment().at("A"), "trial");
  EXPECT_EQ(message.start().environment().at("B"), "study");
  EXPECT_FALSE(message.start().environment().contains("number"));
  EXPECT_EQ(message.start().parameters_json(), R"({"lr": 5e-1})");
  trial.attributes.system[kTrialEnvironment] = "no JSON";
  EXPECT_EQ(ToProto(command, state).start().environment().at("A"), "study");
}

TEST(AgentConvert, KeepsTheRankOrderOfARegroup) {
  const RegroupCommand command{NodeId(1),
                               ReplicaId(5),
                               7,
                               {{ReplicaId(6), "a:1", NodeId(2)}, {ReplicaId(5), "b:2", NodeId(1)}},
                               true};
  const v1::ServiceMessage message = ToProto(command, TunerState{});
  EXPECT_EQ(message.to_replica().replica_id(), 5);
  const v1::Regroup& regroup = message.to_replica().command().regroup();
  EXPECT_EQ(regroup.generation(), 7);
  EXPECT_TRUE(regroup.abandon());
  ASSERT_EQ(regroup.members_size(), 2);
  EXPECT_EQ(regroup.members(0).replica_id(), 6);
  EXPECT_EQ(regroup.members(0).address(), "a:1");
  EXPECT_EQ(regroup.members(1).node_id(), 1);
}

}  // namespace
}  // namespace espalier
