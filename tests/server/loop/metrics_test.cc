#include "tuner/server/loop/metrics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/api/direct_tuner.h"

namespace espalier {
namespace {

using testing::HasSubstr;

TEST(Metrics, TextNamesWhatIsCountedAndWhatIs) {
  DirectTuner tuner;
  ASSERT_TRUE(tuner.Post(AgentHello{"oak", 3, {}}).status.ok());
  Metrics metrics;
  metrics.CountBatch(5, 0.0015);
  metrics.CountBatch(2, 0);
  metrics.CountLook(0.0015);
  metrics.CountRequest("grpc", "GetStudy", "NOT_FOUND");
  metrics.CountResize(0.004);
  metrics.CountCopy(/*failed=*/false, 1000);
  metrics.CountCopy(/*failed=*/true, 0);
  metrics.CountChecks({.alike = 40, .norms = 0, .unlike = 1});
  metrics.CountChecks({.alike = 2, .norms = 3, .unlike = 0});
  const auto text = metrics.Text(tuner, 7);
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("espalier_events_total 7"));
  EXPECT_THAT(*text, HasSubstr("espalier_batch_events_count 2"));
  EXPECT_THAT(*text, HasSubstr("espalier_commit_seconds_count 1"));
  EXPECT_THAT(*text, HasSubstr("espalier_look_seconds_bucket{le=\"0.002\"} 1"));
  EXPECT_THAT(*text, HasSubstr("espalier_regroup_pause_seconds_bucket{le=\"0.005\"} 1"));
  EXPECT_THAT(*text, HasSubstr("espalier_checkpoint_bytes_total 1000"));
  EXPECT_THAT(*text, HasSubstr("espalier_checkpoint_copies_failed_total 1"));
  EXPECT_THAT(*text, HasSubstr("espalier_replica_checks_total{result=\"alike\"} 42"));
  EXPECT_THAT(*text, HasSubstr("espalier_replica_checks_total{result=\"norms\"} 3"));
  EXPECT_THAT(*text, HasSubstr("espalier_replica_checks_total{result=\"unlike\"} 1"));
  EXPECT_THAT(*text, HasSubstr("espalier_checkpoint_copies 0"));
  EXPECT_THAT(*text, HasSubstr("method=\"GetStudy\""));
  EXPECT_THAT(*text, HasSubstr("code=\"NOT_FOUND\""));
  EXPECT_THAT(*text, HasSubstr("espalier_studies{state=\"RUNNING\"} 0"));
  EXPECT_THAT(*text, HasSubstr("espalier_trials{state=\"PRUNED\"} 0"));
  EXPECT_THAT(*text, HasSubstr("espalier_slots_total 3"));
  EXPECT_THAT(*text, HasSubstr("espalier_slots_held 0"));
  EXPECT_THAT(*text, HasSubstr("espalier_queue_length 7"));
  EXPECT_THAT(*text, HasSubstr("process_resident_memory_bytes"));
  EXPECT_GT(ResidentBytes(), 0);
}

TEST(Metrics, GaugesOfATrialExistWhileItTrains) {
  DirectTuner tuner;
  StudySpec spec;
  spec.name = "mnist";
  spec.space = *SearchSpace::FromJson(R"({"x": {"_type": "uniform", "_value": [0, 1]}})");
  spec.command = {"program"};
  spec.max_trials = 1;
  spec.sampler = {"random", {}};
  ASSERT_TRUE(tuner.Post(CreateStudy{spec, false}).status.ok());
  ASSERT_TRUE(tuner.Post(AgentHello{"oak", 1, {}}).status.ok());
  const Metrics metrics;
  EXPECT_THAT(*metrics.Text(tuner, 0), testing::Not(HasSubstr("espalier_trial_step_seconds")));
  const ReplicaId replica = std::get<StartReplicaCommand>(tuner.commands.at(0)).replica;
  ReplicaProgress progress;
  progress.figures[Figure::kGoodput] = 250;
  progress.figures[Figure::kMemory] = 4096;
  progress.profile.push_back({{1, 1, 32}, 0, 0, 10, 2.5, 0.5});
  tuner.Post(FromReplica{replica, progress});
  const std::string text = *metrics.Text(tuner, 0);
  EXPECT_THAT(text, HasSubstr("espalier_trial_step_seconds{study=\"mnist\",trial=\"0\"} 0.25"));
  EXPECT_THAT(text, HasSubstr("espalier_trial_sync_share{study=\"mnist\",trial=\"0\"} 0.2"));
  EXPECT_THAT(text, HasSubstr("espalier_trial_goodput{study=\"mnist\",trial=\"0\"} 250"));
  EXPECT_THAT(text, HasSubstr("espalier_trial_memory_bytes{study=\"mnist\",trial=\"0\"} 4096"));
  tuner.Post(FromReplica{replica, ReplicaFinished{0.5, ""}});
  EXPECT_THAT(*metrics.Text(tuner, 0), testing::Not(HasSubstr("espalier_trial_step_seconds")));
}

}  // namespace
}  // namespace espalier
