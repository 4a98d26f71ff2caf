#include "tuner/api/agent_convert.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuner/core/state/refusals.h"
#include "tuner/messages/wire/replica_wire.h"

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
  live.add_more_slots(3);
  live.mutable_ready()->set_address("127.0.0.1:1");
  SetBatch(*live.mutable_ready());

  const auto converted = FromProto(message);
  ASSERT_TRUE(converted.ok()) << converted.status();
  const auto& details = std::get<NodeDetails>(converted->details);
  ASSERT_EQ(details.pids.size(), 1u);
  EXPECT_EQ(details.pids[0].pid, 4711);
  const auto& event = std::get<AgentHello>(converted->event.value());
  EXPECT_EQ(event.node_name, "oak");
  EXPECT_EQ(event.slots, 4);
  ASSERT_EQ(event.replicas.size(), 1u);
  EXPECT_EQ(event.replicas[0].replica, ReplicaId(7));
  EXPECT_EQ(event.replicas[0].generation, 5);
  EXPECT_EQ(event.replicas[0].more_slots, std::vector<int>{3});
  ASSERT_TRUE(event.replicas[0].ready);
  EXPECT_EQ(event.replicas[0].ready->batch, (BatchBounds{32, 256, 4, 64, true, 16}));
  for (const int slot : {-1, kMaxSlotsPerNode}) {
    live.set_more_slots(0, slot);
    EXPECT_TRUE(absl::IsInvalidArgument(FromProto(message).status())) << slot;
  }
}

TEST(AgentConvert, RefusesHelloWithoutNameOrSlots) {
  v1::AgentMessage message;
  message.mutable_hello()->set_slots(1);
  EXPECT_TRUE(absl::IsInvalidArgument(FromProto(message).status()));
  for (const char* name : {"a\nb", "a\"b", "a\\b", "\x7f"}) {
    message.mutable_hello()->set_node_name(name);
    EXPECT_TRUE(absl::IsInvalidArgument(FromProto(message).status())) << name;
  }
  message.mutable_hello()->set_node_name("oak");
  EXPECT_TRUE(FromProto(message).ok());
  message.mutable_hello()->set_slots(0);
  EXPECT_THAT(std::string(FromProto(message).status().message()), HasSubstr("got 0"));
  message.mutable_hello()->set_slots(kMaxSlotsPerNode + 1);
  EXPECT_TRUE(absl::IsInvalidArgument(FromProto(message).status()));
}

TEST(AgentConvert, RefusesANoticeThatIsNoTime) {
  v1::AgentMessage hello;
  hello.mutable_hello()->set_node_name("oak");
  hello.mutable_hello()->set_slots(1);
  v1::AgentMessage leaving;
  for (const double seconds : {-1.0, 1e13, HUGE_VAL, std::nan("")}) {
    hello.mutable_hello()->set_leaves_in_s(seconds);
    EXPECT_TRUE(absl::IsInvalidArgument(FromProto(hello).status())) << seconds;
    leaving.mutable_leaving()->set_within_s(seconds);
    EXPECT_TRUE(absl::IsInvalidArgument(FromProto(leaving).status())) << seconds;
  }
  leaving.mutable_leaving()->set_within_s(kMaxTime_s);
  EXPECT_TRUE(FromProto(leaving).ok());
}

TEST(AgentConvert, TakesSlotsThatCannotBeUsedFromHelloAndAlone) {
  const std::map<int, std::string> expected{{1, "GPU is lost"}};
  v1::AgentMessage message;
  v1::UnusableSlot& slot = *message.mutable_unusable()->add_slots();
  slot.set_slot(1);
  slot.set_reason("GPU is lost");
  EXPECT_EQ(std::get<AgentSlots>(*FromProto(message)->event).unusable, expected);
  v1::AgentMessage hello;
  hello.mutable_hello()->set_node_name("oak");
  hello.mutable_hello()->set_slots(2);
  *hello.mutable_hello()->mutable_unusable() = message.unusable();
  EXPECT_EQ(std::get<AgentHello>(*FromProto(hello)->event).unusable_slots, expected);
  slot.set_slot(-1);
  EXPECT_THAT(std::string(FromProto(message).status().message()), HasSubstr("got -1"));
}

TEST(AgentConvert, HelloTellsHowManyGpusTheSlotsShare) {
  v1::AgentMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_node_name("oak");
  hello.set_slots(4);
  EXPECT_EQ(std::get<AgentHello>(*FromProto(message)->event).gpus, 0);
  hello.add_gpus()->set_uuid("GPU-a");
  hello.add_gpus()->set_uuid("GPU-b");
  EXPECT_EQ(std::get<AgentHello>(*FromProto(message)->event).gpus, 2);
}

TEST(AgentConvert, RefusesReadyWithImpossibleBatch) {
  v1::AgentMessage message = FromReplicaMessage(9);
  v1::Ready& ready = *message.mutable_from_replica()->mutable_message()->mutable_ready();
  SetBatch(ready);
  EXPECT_EQ(std::get<ReplicaReady>(EventOf<FromReplica>(message).message).batch.initial, 32);
  ready.mutable_batch()->set_min_atomic_batch_size(65);
  const absl::Status status = FromProto(message).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("replica 9"));
}

TEST(AgentConvert, PassesOnWhatAReplicaSaid) {
  v1::AgentMessage message = FromReplicaMessage(9);
  const ReplicaStuck stuck{4, 10, {{ReplicaId(8), "host:8", Contact::kRefused, "refused"}}};
  *message.mutable_from_replica()->mutable_message() = ToProto(ReplicaMessage(stuck));
  const auto event = EventOf<FromReplica>(message);
  EXPECT_EQ(event.replica, ReplicaId(9));
  EXPECT_EQ(std::get<ReplicaStuck>(event.message), stuck);
}

TEST(AgentConvert, RefusesReportsOfTooManyFigures) {
  v1::AgentMessage message = FromReplicaMessage(9);
  auto& extra =
      *message.mutable_from_replica()->mutable_message()->mutable_report()->mutable_extra();
  for (std::size_t i = 0; i < kMaxExtraFigures; ++i) extra["figure " + std::to_string(i)] = 1;
  EXPECT_TRUE(FromProto(message).ok());
  extra["one more"] = 1;
  EXPECT_THAT(std::string(FromProto(message).status().message()), HasSubstr("got 101"));
  extra.clear();
  extra[std::string(kMaxFigureName + 1, 'x')] = 1;
  EXPECT_THAT(std::string(FromProto(message).status().message()), HasSubstr("got 257"));
}

TEST(AgentConvert, RefusesReportsOfImpossibleSteps) {
  v1::AgentMessage message = FromReplicaMessage(9);
  v1::Report& report = *message.mutable_from_replica()->mutable_message()->mutable_report();
  report.set_step(kMaxStep);
  EXPECT_TRUE(FromProto(message).ok());
  for (const std::int64_t step : {std::int64_t{-1}, kMaxStep + 1}) {
    report.set_step(step);
    EXPECT_THAT(std::string(FromProto(message).status().message()),
                HasSubstr("replica 9: a report's step must be from 0 to 9007199254740992, got "));
  }
}

TEST(AgentConvert, TakesTheProcessIdOfAReplicaThatStarted) {
  v1::AgentMessage message;
  message.mutable_started()->set_replica_id(7);
  message.mutable_started()->set_pid(4711);
  EXPECT_EQ(EventOf<ReplicaStarted>(message).replica, ReplicaId(7));
  const FromAgent converted = *FromProto(message);
  EXPECT_EQ(std::get<ReplicaPid>(converted.details).pid, 4711);
}

TEST(AgentConvert, TellsWhyAReplicaCouldNotHaveItsCheckpoint) {
  v1::AgentMessage message;
  v1::ReplicaExited& exited = *message.mutable_exited();
  EXPECT_EQ(EventOf<ReplicaExited>(message).checkpoint, CheckpointFailure::kNone);
  exited.set_checkpoint_missing(true);
  EXPECT_EQ(EventOf<ReplicaExited>(message).checkpoint, CheckpointFailure::kMissing);
  exited.set_checkpoint_gone(true);
  EXPECT_EQ(EventOf<ReplicaExited>(message).checkpoint, CheckpointFailure::kGone);
}

TEST(AgentConvert, HeartbeatsAndEmptyMessagesAreNoEvents) {
  v1::AgentMessage message;
  EXPECT_FALSE(FromProto(message)->event);
  message.mutable_heartbeat();
  EXPECT_FALSE(FromProto(message)->event);
  EXPECT_FALSE(FromProto(FromReplicaMessage(1))->event);
}

TEST(AgentConvert, TellsNodesOfOneTrialOfTheirRanks) {
  TunerState state;
  Study& study = state.studies[StudyId(1)];
  study.id = StudyId(1);
  study.spec.launch = {"ranks"};
  study.spec.from_output = {"loss=(.*)", ""};
  Trial& trial = state.trials[TrialId(4)];
  trial.id = TrialId(4);
  trial.study = StudyId(1);
  StartReplicaCommand order{NodeId(2), ReplicaId(8), TrialId(4), 1};
  EXPECT_TRUE(ToProto(order, state).start().launch().ranks_of_nodes().empty());
  order.ranks_of_nodes = {2, 3};
  EXPECT_TRUE(ToProto(order, state).start().has_output_metric());
  order.node_rank = 1;
  const v1::ServiceMessage second = ToProto(order, state);
  EXPECT_THAT(second.start().launch().ranks_of_nodes(), testing::ElementsAre(2, 3));
  EXPECT_EQ(second.start().launch().node_rank(), 1);
  EXPECT_FALSE(second.start().has_output_metric()) << "rank 0's output is on the first node";
  const auto meet = ToProto(RanksMeetCommand{NodeId(2), ReplicaId(8), "10.0.0.1:7100"}, state);
  EXPECT_EQ(meet.to_replica().replica_id(), 8);
  EXPECT_EQ(meet.to_replica().command().ranks_meet().address(), "10.0.0.1:7100");
}

TEST(AgentConvert, NamesTheFiguresThatAreReadBesideTheValue) {
  TunerState state;
  Study& study = state.studies[StudyId(1)];
  study.id = StudyId(1);
  study.spec.metric = "loss";
  study.spec.other_metrics = {"size"};
  study.spec.from_output = {"loss=(.*)", ""};
  study.spec.constraints = {
      {"loss", false, 1}, {"latency", false, 1}, {"size", true, 1}, {"latency", true, 0}};
  Trial& trial = state.trials[TrialId(4)];
  trial.id = TrialId(4);
  trial.study = StudyId(1);
  const StartReplicaCommand order{NodeId(2), ReplicaId(8), TrialId(4), 1};
  EXPECT_THAT(ToProto(order, state).start().output_metric().figures(),
              testing::ElementsAre("size", "latency"));
  study.spec.from_output = {};
  study.spec.from_files = {"log.jsonl", "loss", "", ""};
  EXPECT_THAT(ToProto(order, state).start().file_metric().figures(),
              testing::ElementsAre("size", "latency"));
}

TEST(AgentConvert, TakesWhatRanksSayOnlyAsItCanBe) {
  v1::AgentMessage message;
  v1::FromReplica& from = *message.mutable_from_replica();
  from.set_replica_id(8);
  from.mutable_message()->mutable_ranks_wait()->set_address("10.0.0.1:7100");
  EXPECT_TRUE(FromProto(message).ok());
  from.mutable_message()->mutable_ranks_wait()->set_address("nowhere");
  EXPECT_THAT(std::string(FromProto(message).status().message()),
              testing::HasSubstr("where its ranks meet should be HOST:PORT, got \"nowhere\""));
  from.mutable_message()->mutable_ranks_failed()->set_ago_s(-1);
  EXPECT_THAT(std::string(FromProto(message).status().message()), testing::HasSubstr("got -1"));
  from.mutable_message()->mutable_ranks_left()->set_ago_s(-2);
  EXPECT_THAT(std::string(FromProto(message).status().message()), testing::HasSubstr("got -2"));
}

TEST(AgentConvert, FillsStartReplicaFromTheState) {
  TunerState state;
  Study& study = state.studies[StudyId(1)];
  study.id = StudyId(1);
  study.created = Time{1'700'000'000'000'001};
  study.spec.name = "mnist";
  study.spec.command = {"train", "--fast"};
  study.spec.environment = {{"OMP_NUM_THREADS", "1"}};
  study.spec.directory = "/work";
  study.spec.preload = {"transformers"};
  study.spec.launch = {"accelerate", "--debug"};
  study.spec.stop_grace_s = 7;
  study.spec.min_slots = 3;
  study.spec.batch_mode = BatchMode::kAdaptive;
  study.spec.from_output = {"loss=(.*)", "Epoch (.*)"};
  study.spec.seed = (std::uint64_t{1} << 31) + 40;
  Trial& trial = state.trials[TrialId(4)];
  trial.id = TrialId(4);
  trial.study = StudyId(1);
  trial.number = 3;
  trial.parameters = {{"lr", 0.5}, {"batch_size", std::int64_t{32}}};
  trial.checkpoint = "/runs/3.pt";

  StartReplicaCommand order{NodeId(2), ReplicaId(8), TrialId(4), 1};
  order.more_slots = {0, 3};
  const Command command = order;
  EXPECT_EQ(NodeOf(command), NodeId(2));
  const v1::ServiceMessage message = ToProto(command, state);
  const v1::StartReplica& start = message.start();
  EXPECT_EQ(start.replica_id(), 8);
  EXPECT_EQ(start.trial_id(), 4);
  EXPECT_EQ(start.slot(), 1);
  EXPECT_THAT(start.more_slots(), testing::ElementsAre(0, 3));
  EXPECT_THAT(start.command(), testing::ElementsAre("train", "--fast"));
  EXPECT_EQ(start.directory(), "/work");
  EXPECT_EQ(start.environment().at("OMP_NUM_THREADS"), "1");
  EXPECT_EQ(start.environment().at("ESPALIER_BATCH_MODE"), "adaptive");
  EXPECT_EQ(start.environment().at("ESPALIER_DIRECTION"), "minimize");
  EXPECT_EQ(start.parameters_json(), ToJson(trial.parameters));
  EXPECT_EQ(start.study(), "mnist");
  EXPECT_EQ(start.study_identity(), "1-1700000000000001");
  EXPECT_EQ(start.trial_number(), 3);
  EXPECT_EQ(start.seed(), 43);
  EXPECT_EQ(start.output_metric().pattern(), "loss=(.*)");
  EXPECT_EQ(start.output_metric().step(), "Epoch (.*)");
  EXPECT_EQ(start.checkpoint(), "/runs/3.pt");
  EXPECT_FALSE(start.environment().contains("ESPALIER_LAST_STEP"));
  EXPECT_FALSE(start.own_interpreter());
  EXPECT_THAT(start.preload(), testing::ElementsAre("transformers"));
  EXPECT_THAT(start.launch().words(), testing::ElementsAre("accelerate", "--debug"));
  EXPECT_EQ(start.launch().least(), 3);
  EXPECT_EQ(start.launch().grace_s(), 7);
  EXPECT_EQ(start.launch().apart_s(), 600);
  study.spec.timeouts.exit_s = 30;
  EXPECT_EQ(ToProto(command, state).start().launch().apart_s(), 30);
  study.spec.launch.clear();
  EXPECT_FALSE(ToProto(command, state).start().has_launch());
  study.spec.preload = std::nullopt;
  study.spec.from_output = {};
  EXPECT_TRUE(ToProto(command, state).start().own_interpreter());
  EXPECT_FALSE(ToProto(command, state).start().has_output_metric());
  EXPECT_FALSE(ToProto(command, state).start().has_file_metric());
  study.spec.from_files = {"runs", "", "", "val/loss"};
  EXPECT_EQ(ToProto(command, state).start().file_metric().path(), "runs");
  EXPECT_EQ(ToProto(command, state).start().file_metric().tag(), "val/loss");
  trial.values.push_back({2, 0.5, 0, {}, 0});
  trial.values.push_back({7, 0.4, 0, {}, 0});
  EXPECT_EQ(ToProto(command, state).start().environment().at("ESPALIER_LAST_STEP"), "7");
}

TEST(AgentConvert, APopulationExpectsElasticPrograms) {
  TunerState state;
  Study& study = state.studies[StudyId(1)];
  study.id = StudyId(1);
  Trial& trial = state.trials[TrialId(4)];
  trial.id = TrialId(4);
  trial.study = StudyId(1);
  const StartReplicaCommand order{NodeId(2), ReplicaId(8), TrialId(4), 1};
  EXPECT_FALSE(ToProto(order, state).start().expects_elastic());
  study.spec.population.interval = 1;
  EXPECT_TRUE(ToProto(order, state).start().expects_elastic());
}

TEST(AgentConvert, AStartNamesWhoHasItsCheckpointAndAJoinerHasNone) {
  TunerState state;
  state.nodes = {{NodeId(2), "elm"}, {NodeId(3), "oak"}};
  state.studies[StudyId(1)].spec.name = "mnist";
  Trial& trial = state.trials[TrialId(4)];
  trial.study = StudyId(1);
  trial.number = 3;
  trial.checkpoint = "/runs/step-7.pt";
  StartReplicaCommand start{NodeId(2), ReplicaId(8), TrialId(4), 1};
  start.from = {7, "step-7.pt", "print", {}, 0};
  start.sources = {NodeId(3), NodeId(2)};
  v1::ServiceMessage message = ToProto(start, state);
  EXPECT_EQ(message.start().from().name(), "step-7.pt");
  EXPECT_EQ(message.start().from().fingerprint(), "print");
  ASSERT_EQ(message.start().from().sources_size(), 2);
  EXPECT_EQ(message.start().from().sources(0).node(), "oak");
  const CommandSources sources = SourcesOf(start, message);
  EXPECT_THAT(sources.nodes, testing::ElementsAre(NodeId(3), NodeId(2)));
  EXPECT_EQ(sources.told, message.mutable_start()->mutable_from());
  EXPECT_EQ(sources.trial_number, 3);
  start.joins = true;
  start.replicas = 3;
  message = ToProto(start, state);
  EXPECT_FALSE(message.start().has_from());
  EXPECT_EQ(message.start().checkpoint(), "");
  EXPECT_EQ(message.start().joins(), 3);
}

TEST(AgentConvert, HelloTellsOfCheckpoints) {
  v1::AgentMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_node_name("oak");
  hello.set_slots(1);
  EXPECT_FALSE(std::get<AgentHello>(*FromProto(message)->event).checkpoints)
      << "an agent of release 0.1";
  v1::HeldCheckpoint& held = *hello.mutable_checkpoints()->add_checkpoints();
  held.set_study("mnist");
  held.set_trial_number(3);
  held.set_name("step-7.pt");
  held.set_fingerprint("print");
  held.set_fetched(true);
  hello.set_shared_folder("mark");
  const AgentHello event = std::get<AgentHello>(*FromProto(message)->event);
  ASSERT_TRUE(event.checkpoints);
  ASSERT_EQ(event.checkpoints->files.size(), 1u);
  EXPECT_EQ(event.checkpoints->files[0].fingerprint, "print");
  EXPECT_TRUE(event.checkpoints->files[0].fetched);
  EXPECT_EQ(event.shared_folder, "mark");
  held.set_name(std::string(kMaxCheckpointName + 1, 'x'));
  EXPECT_THAT(std::string(FromProto(message).status().message()),
              HasSubstr("a checkpoint's name has at most 1024 bytes"));
}

TEST(AgentConvert, AnEnqueuedTrialHasItsOwnEnvironmentAndItsParametersToTheLetter) {
  TunerState state;
  state.studies[StudyId(1)].spec.environment = {{"A", "study"}, {"B", "study"}};
  Trial& trial = state.trials[TrialId(4)];
  trial.study = StudyId(1);
  trial.parameters = {{"lr", 0.5}};
  trial.environment = {{"A", "trial"}, {"C", "3"}};
  trial.attributes.system = {{kTrialParameters, R"({"lr": 5e-1})"}};
  const Command command = StartReplicaCommand{NodeId(2), ReplicaId(8), TrialId(4), 1};
  const v1::ServiceMessage message = ToProto(command, state);
  EXPECT_EQ(message.start().environment().at("A"), "trial");
  EXPECT_EQ(message.start().environment().at("B"), "study");
  EXPECT_EQ(message.start().environment().at("C"), "3");
  EXPECT_EQ(message.start().parameters_json(), R"({"lr": 5e-1})");
}

TEST(AgentConvert, KeepsTheRankOrderOfARegroup) {
  const RegroupCommand command{
      NodeId(1),
      ReplicaId(5),
      {7, {{ReplicaId(6), NodeId(2), "a:1"}, {ReplicaId(5), NodeId(1), "b:2"}}, true}};
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
