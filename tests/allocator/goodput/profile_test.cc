#include "allocator/goodput/profile.h"

#include <cmath>

#include "gtest/gtest.h"

namespace espalier {
namespace {

ProfileEntry Entry(int replicas, std::int64_t size, std::int64_t count, double time_s) {
  return {.key = {1, replicas, size},
          .optimizer_count = count,
          .optimizer_time_s = time_s * static_cast<double>(count)};
}

TEST(Profile, SumsEntriesOfOneShape) {
  Profile profile;
  profile.Add({{1, 2, 32}, 3, 0.3, 1, 0.5, 0.3});
  profile.Add({{1, 2, 32}, 3, 0.3, 1, 0.3, 0.1});
  const auto observations = profile.Observations();
  ASSERT_EQ(observations.size(), 1u);
  EXPECT_NEAR(observations[0].optim_time_s, 0.4, 1e-12);
  EXPECT_NEAR(observations[0].grad_time_s, (0.6 + 0.8 - 0.4) / 8, 1e-12);
}

TEST(Profile, ListsShapesInOrderAndOnlyThoseWithSteps) {
  Profile profile;
  profile.Add(Entry(4, 8, 1, 0.1));
  profile.Add(Entry(2, 16, 1, 0.1));
  profile.Add(Entry(2, 8, 1, 0.1));
  profile.Add({.key = {1, 8, 8}, .accumulation_count = 2, .accumulation_time_s = 0.2});
  const auto observations = profile.Observations();
  ASSERT_EQ(observations.size(), 3u);
  EXPECT_EQ(observations[0].key, (ProfileKey{1, 2, 8}));
  EXPECT_EQ(observations[2].key, (ProfileKey{1, 4, 8}));
  EXPECT_EQ(profile.max_replicas(), 4);
}

TEST(Profile, IgnoresImpossibleEntries) {
  Profile profile;
  profile.Add(Entry(0, 8, 1, 0.1));
  profile.Add(Entry(1, 0, 1, 0.1));
  profile.Add(Entry(1, 8, -1, 0.1));
  profile.Add(Entry(1, 8, 1, NAN));
  profile.Add(Entry(1, 8, 1, -0.1));
  profile.Add({.key = {3, 2, 8}, .optimizer_count = 1, .optimizer_time_s = 1});
  EXPECT_TRUE(profile.empty());
  EXPECT_EQ(profile.max_replicas(), 0);
}

TEST(Profile, KeepsTheShapesAddedToLast) {
  Profile profile;
  for (std::size_t i = 0; i < Profile::kMaxShapes; ++i) {
    profile.Add(Entry(1, static_cast<std::int64_t>(i) + 1, 1, 0.1));
  }
  profile.Add(Entry(1, 1, 1, 0.1));
  profile.Add(Entry(1, 1000, 1, 0.1));
  EXPECT_EQ(profile.size(), Profile::kMaxShapes);
  EXPECT_EQ(profile.Observations()[0].key.atomic_batch_size, 1);
  EXPECT_EQ(profile.Observations()[1].key.atomic_batch_size, 3);
}

TEST(Profile, FollowsAMachineThatBecameSlower) {
  Profile profile;
  for (int i = 0; i < 100; ++i) profile.Add(Entry(1, 8, 100, 0.1));
  EXPECT_NEAR(profile.Observations()[0].optim_time_s, 0.1, 1e-9);
  for (int i = 0; i < 20; ++i) profile.Add(Entry(1, 8, 100, 0.2));
  EXPECT_NEAR(profile.Observations()[0].optim_time_s, 0.2, 0.01);
}

}  // namespace
}  // namespace espalier
