#include "trial_runner/elastic/batch_tuner.h"

#include "gtest/gtest.h"
#include "trial_runner/elastic/control_plane.h"
#include "trial_runner/elastic/step_profile.h"

namespace espalier {
namespace {

constexpr BatchBounds kBounds{
    .initial = 32, .max_global = 1024, .min_atomic = 1, .max_atomic = 512, .accumulation = true};

// A machine on which a step costs 10 ms whatever its size, and 10 us a sample.
ProfileEntry Measured(int replicas, std::int64_t atomic) {
  const double step_s = 0.010 + 1e-5 * static_cast<double>(atomic);
  return {.key = {1, replicas, atomic},
          .accumulation_count = 0,
          .accumulation_time_s = 0,
          .optimizer_count = 50,
          .optimizer_time_s = 50 * step_s,
          .sync_time_s = replicas > 1 ? 50 * 0.002 : 0};
}

TEST(BatchTuner, GrowsTheBatchWhereStepsAreDearAndNoiseIsLarge) {
  BatchTuner tuner(kBounds);
  tuner.Add({Measured(1, 32), Measured(1, 64)});
  const auto choice = tuner.Choose(1, 1, {.sqr = 0.001, .var = 1}, 32, 32);
  ASSERT_TRUE(choice);
  EXPECT_GT(choice->global(), 128);
  EXPECT_LE(choice->global(), kBounds.max_global);
}

TEST(BatchTuner, KeepsTheBatchWhereThereIsNoNoiseToAverageOut) {
  BatchTuner tuner(kBounds);
  tuner.Add({Measured(1, 32), Measured(1, 64)});
  const auto choice = tuner.Choose(1, 1, {.sqr = 1000, .var = 1e-6}, 32, 32);
  EXPECT_FALSE(choice) << choice->global();
}

TEST(BatchTuner, StaysWithAChoiceItHasMade) {
  BatchTuner tuner(kBounds);
  tuner.Add({Measured(2, 32), Measured(2, 64)});
  const GradientNoise noise{.sqr = 0.001, .var = 1};
  const auto choice = tuner.Choose(1, 2, noise, 64, 32);
  ASSERT_TRUE(choice);
  EXPECT_FALSE(tuner.Choose(1, 2, noise, choice->global(), choice->atomic_batch_size));
}

TEST(BatchTuner, SaysNothingOfNumbersOfReplicasNeverTimed) {
  BatchTuner tuner(kBounds);
  EXPECT_FALSE(tuner.Choose(1, 1, {}, 32, 32));
  tuner.Add({Measured(1, 32)});
  EXPECT_FALSE(tuner.Choose(1, 2, {}, 32, 16));
}

TEST(StepProfile, LeavesOutTheFirstStepOfAShapeInAGroup) {
  StepProfile profile;
  const ProfileKey shape{1, 2, 16};
  profile.Add(shape, {.optimizer_time_s = 100});
  EXPECT_TRUE(profile.Take().empty());
  profile.Add(shape, {.accumulation_count = 1,
                      .accumulation_time_s = 0.5,
                      .optimizer_time_s = 1,
                      .sync_time_s = 0.25});
  profile.Add(shape, {.optimizer_time_s = 1});
  const auto entries = profile.Take();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].key, shape);
  EXPECT_EQ(entries[0].optimizer_count, 2);
  EXPECT_EQ(entries[0].optimizer_time_s, 2);
  EXPECT_EQ(entries[0].accumulation_count, 1);
  EXPECT_EQ(entries[0].sync_time_s, 0.25);
  EXPECT_TRUE(profile.Take().empty());
  profile.StartGroup();
  profile.Add(shape, {.optimizer_time_s = 100});
  EXPECT_TRUE(profile.Take().empty());
}

TEST(Membership, RanksAndNodes) {
  const Membership m{3,
                     {{ReplicaId(5), NodeId(1), "a:1"},
                      {ReplicaId(2), NodeId(1), "a:2"},
                      {ReplicaId(9), NodeId(4), "b:1"}},
                     false};
  EXPECT_EQ(m.RankOf(ReplicaId(2)), 1);
  EXPECT_EQ(m.RankOf(ReplicaId(3)), std::nullopt);
  EXPECT_EQ(m.Nodes(), 2);
}

}  // namespace
}  // namespace espalier
