// Learning rates that fall while the group changes, in real processes.

#include <filesystem>

#include "tests/trial_runner/torch/elastic_training.h"

namespace espalier {
namespace {

class ScheduleTraining : public ElasticTraining {
 protected:
  // Has another replica, the new rank 0, join while the first one is in the first epoch's first
  // evaluation. Both train to the end. The step at which it came, or -1 if the first had come to
  // its end before it was connected.
  std::int64_t GrowInAnEvaluation(const std::string& run,
                                  const std::vector<std::string>& parameters) {
    const std::filesystem::path hold = run + "/hold";
    std::filesystem::create_directory(hold);
    const auto harness = Harness(run, parameters);
    const auto first = harness->Start();
    const auto joiner = harness->Start();
    harness->AwaitReady(first);
    harness->AwaitReady(joiner);
    harness->Regroup({first}, false, {first});
    AwaitFiles(hold, 1);
    const std::int64_t generation = harness->Regroup({joiner, first});
    harness->AwaitMessage("that the two are connected", [&](const ReplicaHarness::Said& said) {
      const auto* forming = std::get_if<ReplicaForming>(&said.message);
      return forming != nullptr && said.replica == joiner && forming->generation == generation &&
             forming->phase == GroupPhase::kHandingOver;
    });
    std::filesystem::remove_all(hold);
    std::int64_t ends = -1;
    harness->AwaitMessage("the end", [&](const ReplicaHarness::Said& said) {
      if (IsFinished(said)) ends = said.replica;
      return ends >= 0;
    });
    EXPECT_EQ(harness->AwaitExit(first), 0);
    if (ends == first) {  // rank 0 says it, which was the first as long as it was alone
      harness->Kill(joiner);
      return -1;
    }
    EXPECT_EQ(harness->AwaitExit(joiner), 0);
    std::int64_t step = -1;
    for (const Said& said : harness->EverythingSaid()) {
      const auto* regrouped = std::get_if<ReplicaRegrouped>(&said.message);
      if (regrouped != nullptr && said.replica == joiner) step = regrouped->step;
    }
    return step;
  }
};

// The others have stepped their schedule by then, and the joiner's program comes by that place.
TEST_F(ScheduleTraining, AReplicaThatJoinsBetweenTwoEvaluationsDoesNotStepItsScheduleAgain) {
  constexpr std::int64_t kSteps = 5;  // an epoch
  const std::vector<std::string> parameters{"samples=125",   "batch_size=25", "epochs=6",
                                            "evaluations=3", "lr=0.004",      "schedule=epoch"};
  const std::string still = NewRun("still");
  const auto harness = Harness(still, parameters);
  const auto only = harness->Start();
  harness->AwaitReady(only);
  harness->Regroup({only});
  harness->AwaitMessage("the end", IsFinished);
  EXPECT_EQ(harness->AwaitExit(only), 0);

  // Word of the new group may come when these evaluations are over, and it forms in an epoch.
  bool between = false;
  for (int attempt = 0; attempt < 20 && !between; ++attempt) {
    const std::string run = NewRun("grown-" + std::to_string(attempt));
    between = GrowInAnEvaluation(run, parameters) == kSteps;
    EXPECT_EQ(ExpectEachSampleOnceAnEpoch(run, 125), 6);
    ExpectClose(FinalParameters(still), FinalParameters(run));
  }
  EXPECT_TRUE(between);
}

}  // namespace
}  // namespace espalier
