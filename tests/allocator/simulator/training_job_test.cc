#include "allocator/simulator/training_job.h"

#include "gtest/gtest.h"
#include "tests/allocator/simulator/small_loads.h"

namespace espalier {
namespace {

class TrainingJobTest : public ::testing::Test {
 protected:
  TrainingJob Start(ClusterOptions options = {}) { return TrainingJob(spec_, options, memory_); }

  ClusterJob spec_{"job", 0, SmallApplication(), 2, 64};
  StepTimeMemory memory_;
};

TEST_F(TrainingJobTest, DoesNothingWithoutSlots) {
  TrainingJob job = Start();
  ASSERT_TRUE(job.Advance(0, 1000).ok());
  EXPECT_FALSE(job.done());
  EXPECT_EQ(job.attained_service(), 0);
  EXPECT_FALSE(job.Model());
}

TEST_F(TrainingJobTest, MeasuresAndFitsOnceItHasTrained) {
  TrainingJob job = Start();
  ASSERT_TRUE(job.Resize({1}).ok());
  ASSERT_TRUE(job.Advance(0, 30).ok());  // the resize takes it all
  EXPECT_FALSE(job.Model());
  ASSERT_TRUE(job.Advance(30, 30).ok());
  ASSERT_TRUE(job.Model());
  EXPECT_EQ(job.max_profiled_replicas(), 1);
  EXPECT_EQ(job.attained_service(), 60);
  EXPECT_EQ(job.resizes(), 0);
}

TEST_F(TrainingJobTest, EndsAnEpochAtAWholeSecondAndFinishes) {
  // Its user's batch of 64 on one slot is accumulated from two of 32: 0.64 s a step that is worth
  // 5 / 3 of the initial one. An epoch is 60 such steps: 38.4 s.
  ClusterOptions options;
  options.batch = BatchRule::kRequested;
  TrainingJob job = Start(options);
  ASSERT_TRUE(job.Resize({1}).ok());
  ASSERT_TRUE(job.Advance(0, 600).ok());
  ASSERT_TRUE(job.done());
  EXPECT_EQ(*job.completed_s(), 30 + 3 * 38);
  EXPECT_EQ(job.attained_service(), 30 + 3 * 38);
}

TEST_F(TrainingJobTest, CountsEveryPlacementAfterTheFirst) {
  TrainingJob job = Start();
  ASSERT_TRUE(job.Resize({1}).ok());
  ASSERT_TRUE(job.Resize({}).ok());
  EXPECT_EQ(job.resizes(), 0);
  ASSERT_TRUE(job.Resize({2}).ok());
  EXPECT_EQ(job.resizes(), 1);
}

TEST_F(TrainingJobTest, TellsWhatIsLeft) {
  ClusterOptions options;
  options.batch = BatchRule::kRequested;
  TrainingJob job = Start(options);
  // As the original counts it: from the end of the first epoch, in steps of its batch.
  EXPECT_DOUBLE_EQ(*job.StepsLeft(), 100);
  ASSERT_TRUE(job.Resize({1}).ok());
  ASSERT_TRUE(job.Advance(0, 31).ok());
  // A model that has seen one microbatch size of 32 takes half its 0.32 s to be constant, and 64 in
  // one to take 0.48 s.
  EXPECT_NEAR(job.WorkLeftOnOneSlot(), 3 * 60 * 0.48, 1);
}

TEST_F(TrainingJobTest, StopsAtEventsWithoutRounding) {
  ClusterOptions options;
  options.batch = BatchRule::kRequested;
  options.on_events = true;
  options.resize_cost_s = 0.5;
  options.first_profile_s = 2;
  TrainingJob job = Start(options);
  EXPECT_FALSE(job.ToNextEvent());
  ASSERT_TRUE(job.Resize({1}).ok());
  EXPECT_DOUBLE_EQ(*job.ToNextEvent(), 0.5);
  ASSERT_TRUE(job.Advance(0, 0.5).ok());
  EXPECT_DOUBLE_EQ(*job.ToNextEvent(), 2);
  ASSERT_TRUE(job.Advance(0.5, 2).ok());
  const double to_epoch = *job.ToNextEvent();
  EXPECT_NEAR(to_epoch, 38.4 - 2, 0.1);
  ASSERT_TRUE(job.Advance(2.5, to_epoch).ok());
  EXPECT_TRUE(job.Model());
  EXPECT_NEAR(*job.ToNextEvent(), 38.4, 0.1);
}

TEST(SplitBatch, AccumulatesWhatDoesNotFitAndOnALoneReplica) {
  const BatchBounds bounds{.initial = 32, .max_global = 512, .min_atomic = 8, .max_atomic = 128};
  EXPECT_EQ(SplitBatch(bounds, 512, 2).atomic, 128);
  EXPECT_EQ(SplitBatch(bounds, 512, 2).accumulation, 1);
  EXPECT_EQ(SplitBatch(bounds, 64, 1).accumulation, 1);
  EXPECT_EQ(SplitBatch(bounds, 32, 1).accumulation, 0);
  EXPECT_EQ(SplitBatch(bounds, 100, 3).atomic, 34);
}

}  // namespace
}  // namespace espalier
