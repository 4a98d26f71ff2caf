#include "allocator/policies/policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/allocator/pools.h"

namespace espalier {
namespace {

// Three trials on a slot each; the third is the best, then the first.
Pool ThreeTrials(int slots) {
  Pool pool{{Node(1, slots)}, {}};
  const double costs[] = {0.3, 0.9, 0.1};
  for (int j = 1; j <= 3; ++j) {
    Job job = RunningJob(j, {{NodeId(1), 1}}, 0.5, 16);
    job.max_profiled_replicas = 8;
    job.goodput = Scaling(0.01);
    job.cost = costs[j - 1];
    pool.jobs.push_back(job);
  }
  return pool;
}

std::vector<int> SizesUnder(const Pool& pool, const Options& options) {
  const auto held = After(pool, Make("hypersched", options)->Allocate(pool));
  std::vector<int> sizes;
  for (const Job& job : pool.jobs) sizes.push_back(Total(held.at(job.id)));
  return sizes;
}

TEST(HyperSched, GivesTheLeftoverToTheBest) {
  EXPECT_EQ(SizesUnder(ThreeTrials(8), {}), (std::vector<int>{1, 1, 6}));
}

TEST(HyperSched, GivesTheLeftoverInTurnByRank) {
  EXPECT_EQ(SizesUnder(ThreeTrials(8), {{"leftover", 0}}), (std::vector<int>{3, 2, 3}));
}

TEST(HyperSched, GivesTheLeftoverBySoftmaxAndTheRestToTheBest) {
  // exp of -0.2, -0.8 and 0, of a sum of 2.268: 0.361, 0.198 and 0.441 of 13.
  EXPECT_EQ(SizesUnder(ThreeTrials(16), {{"leftover", 2}}), (std::vector<int>{5, 3, 8}));
}

TEST(HyperSched, TakesBackFromWhoIsNoLongerBest) {
  Pool pool = ThreeTrials(8);
  pool.jobs[1].current = {{NodeId(1), 6}};
  const auto decisions = Make("hypersched")->Allocate(pool);
  ASSERT_EQ(decisions.size(), 2u);
  EXPECT_EQ(decisions[0].reason, "shrinks 6 -> 1: its share by rank is 1");
  EXPECT_EQ(decisions[1].reason, "grows 1 -> 6: its share by rank is 6");
}

TEST(HyperSched, GrowsOnlyWhereTheTimeLeftPaysForTheStartup) {
  Pool pool = ThreeTrials(8);
  for (Job& job : pool.jobs) {
    job.resize_cost_s = 30;
    job.time_left_s = 1000;
  }
  EXPECT_EQ(SizesUnder(pool, {})[2], 6);
  // With 35 s left a restart leaves a seventh of them: six times as fast is no gain.
  for (Job& job : pool.jobs) job.time_left_s = 35;
  EXPECT_EQ(SizesUnder(pool, {})[2], 1);
}

TEST(HyperSched, DoesNotGrowOntoSlotsThatBringNothing) {
  Pool pool = ThreeTrials(8);
  pool.jobs[2].goodput = Scaling(40);
  EXPECT_EQ(SizesUnder(pool, {})[2], 1);
}

TEST(HyperSched, MakesRoomForWaitingTrials) {
  Pool pool = ThreeTrials(8);
  pool.jobs[2].current = {{NodeId(1), 6}};
  pool.jobs.push_back(WaitingJob(4));
  EXPECT_EQ(SizesUnder(pool, {}), (std::vector<int>{1, 1, 5, 1}));
}

TEST(HyperSched, RefusesAnUnknownWayToDivide) {
  EXPECT_THAT(
      std::string(MakePolicy("hypersched", {{"leftover", 1.5}}).status().message()),
      ::testing::HasSubstr("option \"leftover\" needs a whole number from 0 to 2, got 1.5"));
}

}  // namespace
}  // namespace espalier
