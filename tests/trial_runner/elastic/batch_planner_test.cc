#include "trial_runner/elastic/batch_planner.h"

#include "gtest/gtest.h"

namespace espalier {
namespace {

constexpr BatchBounds kPlannedBounds{
    .initial = 32, .max_global = 1024, .min_atomic = 1, .max_atomic = 512, .accumulation = true};

BatchPlanner Adaptive() {
  BatchPlanner batches;
  batches.SetData(100, kPlannedBounds);
  batches.Tune();
  return batches;
}

// On a machine on which a step costs 10 ms whatever its size, larger batches pay.
std::vector<ProfileEntry> StepsOf10Milliseconds() {
  std::vector<ProfileEntry> entries;
  for (const std::int64_t atomic : {32, 64}) {
    entries.push_back({.key = {1, 1, atomic},
                       .accumulation_count = 0,
                       .accumulation_time_s = 0,
                       .optimizer_count = 50,
                       .optimizer_time_s = 50 * (0.010 + 1e-5 * static_cast<double>(atomic)),
                       .sync_time_s = 0});
  }
  return entries;
}

TrainingPosition With(std::int64_t batch_size) {
  TrainingPosition position;
  position.batch_size = batch_size;
  return position;
}

TEST(BatchPlanner, ProposesALargerBatchUntilAllHaveHeardOfIt) {
  BatchPlanner batches = Adaptive();
  TrainingPosition position = With(32);
  batches.Learn(StepsOf10Milliseconds(), position, 32, 1, 1);
  const BatchPlanner::Proposal proposed = batches.proposal();
  EXPECT_GT(proposed.batch_size, 32);
  EXPECT_EQ(position.batch_size, 32);

  EXPECT_TRUE(batches.Adopt(proposed, position));
  EXPECT_EQ(position.batch_size, proposed.batch_size);
  EXPECT_EQ(batches.MaxAtomic(position, 1), proposed.atomic_batch_size);
  EXPECT_EQ(batches.proposal().batch_size, 0);
}

TEST(BatchPlanner, ProposesNothingInFixedMode) {
  BatchPlanner batches;
  batches.SetData(100, kPlannedBounds);
  batches.Learn(StepsOf10Milliseconds(), With(32), 32, 1, 1);
  EXPECT_EQ(batches.proposal().batch_size, 0);
}

TEST(BatchPlanner, NoProposalChangesNothing) {
  BatchPlanner batches = Adaptive();
  TrainingPosition position = With(32);
  position.atomic_batch_size = 16;
  EXPECT_FALSE(batches.Adopt({}, position));
  EXPECT_EQ(position.batch_size, 32);
  EXPECT_EQ(position.atomic_batch_size, 16);
  // Only the division changes: gradients of the same batch can still be compared.
  EXPECT_FALSE(batches.Adopt({.batch_size = 32, .atomic_batch_size = 8}, position));
  EXPECT_EQ(position.atomic_batch_size, 8);
}

TEST(BatchPlanner, ADroppedProposalIsGone) {
  BatchPlanner batches = Adaptive();
  batches.Learn(StepsOf10Milliseconds(), With(32), 32, 1, 1);
  batches.DropProposal();
  EXPECT_EQ(batches.proposal().batch_size, 0);
}

TEST(BatchPlanner, ALoneReplicaTakesAFixedBatchInTwo) {
  BatchPlanner batches;
  BatchBounds bounds = kPlannedBounds;
  bounds.max_unsplit = 16;
  batches.SetData(100, bounds);
  const TrainingPosition position = With(32);
  EXPECT_EQ(batches.Plan(position, 0, 1, 1).microbatches.size(), 2U);
  // Also for the steps that it makes alone while others have no sample: the group has two.
  EXPECT_EQ(batches.Plan(position, 0, 1, 2).microbatches.size(), 1U);
}

TEST(BatchPlanner, AlignedSharesAreNotCutByOnes) {
  BatchPlanner batches;
  BatchBounds bounds = kPlannedBounds;
  bounds.max_atomic = 1;
  batches.SetData(100, bounds);
  const TrainingPosition position = With(8);
  EXPECT_EQ(batches.MaxAtomic(position, 2), 1);
  batches.Align();
  EXPECT_EQ(batches.MaxAtomic(position, 2), 2);
}

// The end of an epoch may be shorter, and the cursor anywhere.
TEST(BatchPlanner, AFullPlanIsOfTheWholeBatch) {
  BatchPlanner batches;
  batches.SetData(100, kPlannedBounds);
  TrainingPosition position = With(32);
  position.cursor = 90;
  EXPECT_EQ(batches.Plan(position, 0, 2, 2).samples, 10);
  EXPECT_EQ(batches.FullPlan(position, 2).samples, 32);
}

}  // namespace
}  // namespace espalier
