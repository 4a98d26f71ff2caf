// Steps of fewer samples than replicas, in real processes.

#include <csignal>

#include "tests/trial_runner/torch/elastic_training.h"

namespace espalier {
namespace {

class ShortSteps : public ElasticTraining {
 protected:
  // What so many replicas come to, the last of them as rank 0.
  std::vector<double> Train(const std::string& name, std::vector<std::string> parameters,
                            int replicas, std::int64_t samples) {
    const std::string run = NewRun(name);
    parameters.push_back("samples=" + std::to_string(samples));
    TrainToTheEnd(run, parameters, replicas);
    for (const int code : exit_codes_) EXPECT_EQ(code, 0);
    ExpectEachSampleOnceAnEpoch(run, samples);
    return FinalParameters(run);
  }

  static constexpr int kReplicas = 3;
};

// The rate follows a state of the program's own, which counts batches: a replica without one does
// not count it, and is handed what the others have counted.
TEST_F(ShortSteps, LeaveAllReplicasWithTheSameStateOfTheProgram) {
  for (const std::int64_t left : {1, 2}) {
    SCOPED_TRACE(left);
    const std::vector<std::string> parameters{"batch_size=12", "epochs=30", "lr=0.01",
                                              "schedule=batch", "sums=true"};
    const std::int64_t samples = 36 + left;
    const std::string of = std::to_string(left);
    ExpectClose(Train("one-" + of, parameters, 1, samples),
                Train("three-" + of, parameters, kReplicas, samples));
  }
}

TEST_F(ShortSteps, OfTwoModelsWithClippingAsOnAGpu) {
  std::vector<std::string> parameters{"batch_size=12",  "epochs=20", "lr=0.01",
                                      "schedule=batch", "models=2",  "max_gradient_norm=2"};
  const std::vector<double> alone = Train("one", parameters, 1, 37);
  ExpectClose(alone, Train("three", parameters, kReplicas, 37));
  parameters.emplace_back("bucket_operations=true");
  ExpectClose(alone, Train("gpu", parameters, kReplicas, 37));
  parameters.emplace_back("gradient_kernel=true");
  ExpectClose(alone, Train("kernel", parameters, kReplicas, 37));
}

TEST_F(ShortSteps, ThatAreNotFiniteAreSkippedByAll) {
  const std::vector<std::string> parameters{"batch_size=12", "epochs=10", "lr=0.01", "nan_from=8",
                                            "schedule=batch"};  // the second epoch's last
  ExpectClose(Train("one", parameters, 1, 37), Train("three", parameters, kReplicas, 37));
}

// Every step is a short one; and replicas come and go between them.
TEST_F(ShortSteps, OneAfterTheOtherWhileTheGroupChanges) {
  const std::string run = NewRun("run");
  const auto harness = Harness(run, {"samples=101", "batch_size=2", "epochs=0", "compute_ms=1",
                                     "lr=0.0005", "schedule=batch", "sums=true"});
  std::vector<std::int64_t> all;
  for (int i = 0; i < 4; ++i) all.push_back(harness->Start());
  for (const auto id : all) harness->AwaitReady(id);
  harness->Regroup({all[0], all[1], all[2]}, false, {all[0], all[1], all[2]});
  harness->AwaitRegrouped();
  AwaitSteps(run, 10);
  harness->Regroup({all[3], all[2], all[1], all[0]});
  harness->AwaitRegrouped();
  AwaitSteps(run, 60);
  harness->Signal(all[3], SIGKILL);  // it had a sample in each step
  harness->Regroup({all[2], all[1], all[0]}, true, {all[0], all[1], all[2]});
  harness->AwaitRegrouped();
  AwaitSteps(run, 80);
  harness->Signal(all[0], SIGKILL);  // it had none
  harness->Regroup({all[1], all[2]}, true, {all[1], all[2]});
  harness->AwaitRegrouped();
  Stop(run);
  harness->AwaitMessage("the end", IsFinished);
  EXPECT_EQ(harness->AwaitExit(all[1]), 0);
  EXPECT_EQ(harness->AwaitExit(all[2]), 0);
  harness->Kill(all[3]);
  harness->Kill(all[0]);
  EXPECT_EQ(ReportedSteps(*harness), ExpectEachSampleOnceAnEpoch(run, 101));
}

}  // namespace
}  // namespace espalier
