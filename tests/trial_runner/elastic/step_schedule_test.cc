#include "trial_runner/elastic/step_schedule.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace espalier {
namespace {

TEST(CutEvenly, PartsAreAdjacentAndDifferByOneAtMost) {
  const SampleSlice whole{7, 23};
  std::int64_t next = whole.begin;
  for (int i = 0; i < 5; ++i) {
    const SampleSlice part = CutEvenly(whole, i, 5);
    EXPECT_EQ(part.begin, next);
    EXPECT_GE(part.size, 4);
    EXPECT_LE(part.size, 5);
    next += part.size;
  }
  EXPECT_EQ(next, 30);
}

TEST(PlanStep, SplitsIntoAsFewEqualMicrobatchesAsTheLimitAllows) {
  const StepPlan plan = PlanStep(100, 1000, 60, 1, 2, 12);
  EXPECT_EQ(plan.samples, 60);
  ASSERT_EQ(plan.microbatches.size(), 3u);
  EXPECT_EQ(plan.microbatches[0], (SampleSlice{130, 10}));
  EXPECT_EQ(plan.microbatches[2], (SampleSlice{150, 10}));
}

TEST(PlanStep, LastStepTakesWhatIsLeftAndLeavesSomeReplicasWithoutSamples) {
  EXPECT_EQ(PlanStep(97, 100, 32, 0, 4, 32).samples, 3);
  EXPECT_EQ(PlanStep(97, 100, 32, 2, 4, 32).microbatches.size(), 1u);
  EXPECT_TRUE(PlanStep(97, 100, 32, 3, 4, 32).microbatches.empty());
}

TEST(PlanStep, WeightsOfAllMicrobatchesOfAllReplicasSumToOne) {
  for (int replicas = 1; replicas <= 7; ++replicas) {
    double sum = 0;
    for (int rank = 0; rank < replicas; ++rank) {
      const StepPlan plan = PlanStep(0, 1000, 53, rank, replicas, 4);
      for (const SampleSlice& m : plan.microbatches) sum += plan.WeightOf(m);
    }
    EXPECT_NEAR(sum, 1.0, 1e-12) << replicas;
  }
}

TEST(PlanStep, CutsAlignedSharesEquallyOften) {
  for (int replicas = 1; replicas <= 7; ++replicas) {
    for (const std::int64_t batch : {1, 9, 16, 50}) {
      const auto count = [&](int rank, bool aligned) {
        return PlanStep(0, 100, batch, rank, replicas, 2, aligned).microbatches.size();
      };
      for (int rank = 0; rank < std::min<std::int64_t>(replicas, batch); ++rank) {
        EXPECT_EQ(count(rank, true), count(0, false)) << rank << " of " << replicas;
      }
    }
  }
}

TEST(PlanStepDeathTest, RefusesToPlanPastTheEpoch) {
  EXPECT_DEATH(PlanStep(100, 100, 8, 0, 1, 8), "the epoch is over");
}

}  // namespace
}  // namespace espalier
