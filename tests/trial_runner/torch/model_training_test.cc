// What a step does with models, precision and numbers that are none, in real processes.

#include <algorithm>
#include <cmath>
#include <map>

#include "base/random.h"
#include "tests/trial_runner/torch/elastic_training.h"

namespace espalier {
namespace {

class ModelTraining : public ElasticTraining {
 protected:
  static ReplicaReport LastReport(ReplicaHarness& harness) {
    ReplicaReport last;
    for (const Said& said : harness.EverythingSaid()) {
      if (const auto* report = std::get_if<ReplicaReport>(&said.message)) last = *report;
    }
    return last;
  }

  // Microbatches of an epoch of four steps of 16 samples, all replicas'.
  std::int64_t Microbatches(const std::string& name, const std::vector<std::string>& more,
                            int replicas) {
    const std::string run = NewRun(name);
    std::vector<std::string> parameters{"samples=64", "batch_size=16", "epochs=1", "lr=0.001"};
    parameters.insert(parameters.end(), more.begin(), more.end());
    TrainToTheEnd(run, parameters, replicas);
    const std::map<std::int64_t, Attempt> steps = Steps(run);
    EXPECT_EQ(steps.size(), 4U);
    std::int64_t microbatches = 0;
    for (const auto& [number, step] : steps) microbatches += step.microbatches;
    return microbatches;
  }
};

TEST_F(ModelTraining, ALoneReplicaAboveTheBaseBatchMeasuresNoiseByTwoMicrobatches) {
  EXPECT_EQ(Microbatches("base", {"base_batch_size=16"}, 1), 4);
  EXPECT_EQ(Microbatches("above", {"base_batch_size=8"}, 1), 8);
  EXPECT_EQ(Microbatches("smaller", {"base_batch_size=8", "max_atomic=4"}, 1), 16);
  EXPECT_EQ(Microbatches("whole", {"base_batch_size=8", "accumulation=false"}, 1), 4);
  EXPECT_EQ(Microbatches("together", {"base_batch_size=8"}, 2), 8) << "one each";
  EXPECT_EQ(Microbatches("models", {"base_batch_size=8", "models=2"}, 1), 4);
}

TEST_F(ModelTraining, TwoModelsAreTheSameWhateverTheReplicas) {
  std::vector<std::string> parameters{"samples=360",      "batch_size=30", "epochs=3",
                                      "models=2",         "lr=0.003",      "base_batch_size=15",
                                      "scaling_rule=sqrt"};
  const std::string one = NewRun("one");
  const auto alone = TrainToTheEnd(one, parameters, 1);
  const std::string two = NewRun("two");
  const auto together = TrainToTheEnd(two, parameters, 3);
  ExpectClose(FinalParameters(one), FinalParameters(two));
  EXPECT_EQ(ExpectEachSampleOnceAnEpoch(two, 360), 3);
  parameters.emplace_back("bucket_operations=true");
  const std::string as_on_a_gpu = NewRun("gpu");
  TrainToTheEnd(as_on_a_gpu, parameters, 1);
  ExpectClose(FinalParameters(one), FinalParameters(as_on_a_gpu));
}

// What it is given lies in the order of its weights, or its steps would mix them up.
TEST_F(ModelTraining, AJoinerTrainsAChannelsLastModelOnAsTheOthersDid) {
  std::vector<std::string> parameters{"samples=300", "batch_size=30",      "epochs=0",
                                      "adam=true",   "channels_last=true", "compute_ms=5"};
  for (const std::string more : {"", "bucket_operations", "gradient_kernel"}) {
    SCOPED_TRACE(more);
    if (!more.empty()) parameters.push_back(more + "=true");
    const std::string run = NewRun("run" + more);
    const auto harness = Harness(run, parameters);
    const auto a = harness->Start();
    const auto b = harness->Start();
    for (const auto id : {a, b}) harness->AwaitReady(id);
    harness->Regroup({a});
    AwaitSteps(run, 12);
    harness->Regroup({a, b});
    harness->AwaitRegrouped({a});
    AwaitSteps(run, 25);
    harness->Regroup({b});
    harness->AwaitRegrouped();
    Stop(run);
    harness->AwaitMessage("the end", IsFinished);
    EXPECT_EQ(harness->AwaitExit(a), 0);
    EXPECT_EQ(harness->AwaitExit(b), 0);
    const std::string alone = NewRun("alone" + more);
    std::vector<std::string> undisturbed = parameters;
    undisturbed[2] = "epochs=" + std::to_string(ExpectEachSampleOnceAnEpoch(run, 300));
    TrainToTheEnd(alone, undisturbed, 1);
    ExpectClose(FinalParameters(alone), FinalParameters(run));
  }
}

// Each step's outcome is known a step late, and has to be when others come to share the state.
TEST_F(ModelTraining, StepsAsOnAGpuGrowAndShrinkWithTheGroup) {
  const std::string run = NewRun("run");
  const auto harness =
      Harness(run, {"samples=300", "batch_size=30", "epochs=0", "adam=true", "max_gradient_norm=5",
                    "nan_from=3", "nan_steps=2", "compute_ms=2", "bucket_operations=true"});
  const auto a = harness->Start();
  harness->AwaitReady(a);
  harness->Regroup({a});
  AwaitSteps(run, 12);
  const auto b = harness->Start();
  harness->AwaitReady(b);
  harness->Regroup({a, b});
  harness->AwaitRegrouped({a});
  AwaitSteps(run, 25);
  harness->Regroup({b});
  harness->AwaitRegrouped();
  AwaitSteps(run, 40);
  Stop(run);
  harness->AwaitMessage("the end", IsFinished);
  EXPECT_EQ(harness->AwaitExit(a), 0);
  EXPECT_EQ(harness->AwaitExit(b), 0);
  const ReplicaReport last = LastReport(*harness);
  EXPECT_EQ(last.extra.at("skipped"), 2);
  EXPECT_TRUE(std::isfinite(last.value));
  EXPECT_EQ(ReportedSteps(*harness), ExpectEachSampleOnceAnEpoch(run, 300));
}

// Replicas are killed and stopped at any point of a step, between its two models too.
TEST_F(ModelTraining, TwoModelsLoseNoSampleWithTheirReplicas) {
  Random random(11);
  const std::string run = NewRun("run");
  const auto harness = Harness(run, {"samples=331", "batch_size=24", "models=2", "epochs=0"});
  std::vector<std::int64_t> members;
  for (int i = 0; i < 3; ++i) members.push_back(harness->Start());
  for (const std::int64_t id : members) harness->AwaitReady(id);
  harness->Regroup(members);
  for (int loss = 0; loss < 6; ++loss) {
    harness->AwaitRegrouped();
    const std::int64_t joiner = harness->Start();
    harness->AwaitReady(joiner);
    const auto lost = static_cast<std::ptrdiff_t>(random.Below(members.size()));
    harness->Kill(members[static_cast<std::size_t>(lost)]);
    members.erase(members.begin() + lost);
    members.push_back(joiner);
    harness->Regroup(members, /*abandon=*/true);
  }
  harness->AwaitRegrouped();
  Stop(run);
  harness->AwaitMessage("the end", IsFinished);
  for (const std::int64_t id : members) EXPECT_EQ(harness->AwaitExit(id), 0);
  EXPECT_EQ(ReportedSteps(*harness), ExpectEachSampleOnceAnEpoch(run, 331));
}

// By the number of replicas and what is done on GPUs, here on the CPU.
class Skipping : public ModelTraining, public ::testing::WithParamInterface<std::tuple<int, bool>> {
 protected:
  std::unique_ptr<ReplicaHarness> Train(const std::string& run,
                                        std::vector<std::string> parameters) {
    const auto [replicas, bucket_operations] = GetParam();
    if (bucket_operations) parameters.emplace_back("bucket_operations=true");
    return TrainToTheEnd(run, parameters, replicas);
  }
};

TEST_P(Skipping, StepsWithoutFiniteGradientsAreSkippedAndCounted) {
  const std::string run = NewRun("run");
  const auto harness =
      Train(run, {"samples=200", "batch_size=20", "epochs=2", "nan_from=4", "nan_steps=3"});
  const ReplicaReport last = LastReport(*harness);
  EXPECT_EQ(last.extra.at("skipped"), 3);
  EXPECT_EQ(last.extra.at("steps"), 20);
  EXPECT_TRUE(std::isfinite(last.value));
  for (const double p : FinalParameters(run)) EXPECT_TRUE(std::isfinite(p));
}

TEST_P(Skipping, ATrialWhoseLossStaysNotFiniteFailsAndSaysWhy) {
  const auto harness = Train(NewRun("run"), {"samples=200", "batch_size=20", "epochs=9",
                                             "nan_from=5", "nan_steps=500", "max_skipped_steps=2"});
  std::string failure;
  for (const Said& said : harness->EverythingSaid()) {
    if (const auto* finished = std::get_if<ReplicaFinished>(&said.message))
      failure = finished->failure;
  }
  EXPECT_NE(failure.find("not finite at step 7"), std::string::npos) << failure;
  EXPECT_NE(failure.find("and the 2 steps before it"), std::string::npos) << failure;
  EXPECT_EQ(exit_codes_.front(), 1);
}

// The last step of an epoch too, whose outcome nobody waits for in a step of his own.
TEST_P(Skipping, TheLastStepOfAnEpochIsCountedInItsReport) {
  const auto harness =
      Train(NewRun("run"), {"samples=200", "batch_size=20", "epochs=1", "nan_from=10"});
  EXPECT_EQ(LastReport(*harness).extra.at("skipped"), 1);
}

INSTANTIATE_TEST_SUITE_P(Replicas, Skipping,
                         ::testing::Combine(::testing::Values(1, 2), ::testing::Bool()));

class Precision : public ModelTraining,
                  public ::testing::WithParamInterface<std::tuple<const char*, int>> {};

TEST_P(Precision, LearnsAboutAsMuchAsInFloat) {
  const auto [precision, replicas] = GetParam();
  const std::vector<std::string> parameters{"samples=400", "batch_size=20", "epochs=4",
                                            "lr=0.003",    "adam=true",     "max_gradient_norm=50"};
  const auto plain = TrainToTheEnd(NewRun("float"), parameters, 1);
  std::vector<std::string> with = parameters;
  with.push_back(std::string("mixed_precision=") + precision);
  const auto mixed = TrainToTheEnd(NewRun("mixed"), with, replicas);
  const double expected = LastReport(*plain).value;
  EXPECT_NEAR(LastReport(*mixed).value, expected, 0.1 * expected);
}

INSTANTIATE_TEST_SUITE_P(Types, Precision,
                         ::testing::Combine(::testing::Values("bf16", "fp16"),
                                            ::testing::Values(1, 2)));

}  // namespace
}  // namespace espalier
