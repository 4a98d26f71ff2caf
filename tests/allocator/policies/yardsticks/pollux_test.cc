#include "allocator/policies/policy.h"
#include "allocator/policies/yardsticks/pollux_fitness.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/allocator/pools.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

// Trials long enough here that a restart costs little.
Job OldJob(std::int64_t id, double sync_share) {
  Job job = WaitingJob(id, 16);
  job.max_profiled_replicas = 8;
  job.goodput = Scaling(sync_share);
  job.age_s = 1e6;
  return job;
}

std::vector<Placement> Placements(const Pool& pool,
                                  const std::vector<AllocationDecision>& decisions) {
  const auto held = After(pool, decisions);
  std::vector<Placement> placements;
  for (const Job& job : pool.jobs) placements.push_back(held.at(job.id));
  return placements;
}

TEST(Pollux, FindsTheFairestDivisionOfASmallPool) {
  Pool pool{{Node(1, 4)}, {OldJob(1, 0.05), OldJob(2, 0.05)}};
  const auto placements = Placements(pool, Make("pollux")->Allocate(pool));
  EXPECT_EQ(placements, (std::vector<Placement>{{{NodeId(1), 2}}, {{NodeId(1), 2}}}));
}

TEST(Pollux, KeepsAYoungTrialThatARestartWouldCostTooMuch) {
  Pool pool{{Node(1, 4)}, {OldJob(1, 0.05)}};
  pool.jobs[0].current = {{NodeId(1), 3}};
  pool.jobs[0].running = true;
  pool.jobs[0].age_s = 10;
  EXPECT_TRUE(Make("pollux")->Allocate(pool).empty());
  pool.jobs[0].age_s = 1e6;
  const auto decisions = Make("pollux")->Allocate(pool);
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_THAT(decisions[0].reason, HasSubstr("grows 3 -> 4"));
  EXPECT_THAT(decisions[0].reason, HasSubstr("fitness"));
}

TEST(Pollux, OnlyAdmitsBetweenTwoSearches) {
  const auto policy = Make("pollux");
  Pool pool{{Node(1, 4)}, {OldJob(1, 0.05)}, /*now_s=*/100};
  const auto first = policy->Allocate(pool);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(Total(first[0].placement), 4);
  pool.jobs[0].current = {{NodeId(1), 2}};
  pool.jobs.push_back(OldJob(2, 0.05));
  pool.now_s = 130;
  const auto between = policy->Allocate(pool);
  ASSERT_EQ(between.size(), 1u);
  EXPECT_EQ(between[0].trial, TrialId(2));
  EXPECT_EQ(Total(between[0].placement), 1);
  pool.now_s = 160;
  EXPECT_EQ(Total(Placements(pool, policy->Allocate(pool))[1]), 2);
}

TEST(Pollux, GivesAWaitingTrialWithoutAModelItsMinimumOnly) {
  Pool pool{{Node(1, 8)}, {WaitingJob(1)}};
  EXPECT_EQ(Total(Placements(pool, Make("pollux")->Allocate(pool))[0]), 1);
}

TEST(Pollux, KeepsToOneGpuTypeAndOffDrainingNodes) {
  Pool pool;
  for (int n = 1; n <= 4; ++n) {
    pool.nodes.push_back(Node(n, 2));
    pool.nodes.back().gpu_type = n <= 2 ? "A100" : "T4";
  }
  pool.nodes[3].draining = true;
  pool.jobs = {OldJob(1, 0.01)};
  const Placement placement = Placements(pool, Make("pollux")->Allocate(pool))[0];
  EXPECT_EQ(placement, (Placement{{NodeId(1), 2}, {NodeId(2), 2}}));
}

TEST(Pollux, RepeatsItselfWithASeed) {
  Pool pool;
  for (int n = 1; n <= 8; ++n) pool.nodes.push_back(Node(n, 4));
  for (int j = 1; j <= 8; ++j) pool.jobs.push_back(OldJob(j, 0.01 * j));
  const Options few = {{"generations", 2}, {"seed", 11}};
  const auto a = Placements(pool, Make("pollux", few)->Allocate(pool));
  EXPECT_EQ(a, Placements(pool, Make("pollux", few)->Allocate(pool)));
  EXPECT_NE(a,
            Placements(pool, Make("pollux", {{"generations", 2}, {"seed", 12}})->Allocate(pool)));
  // More generations find no less.
  const auto many = Placements(pool, Make("pollux", {{"generations", 60}})->Allocate(pool));
  EXPECT_GT(PolluxFitness(pool, many), PolluxFitness(pool, a));
}

TEST(Pollux, RefusesOptionsOutOfRange) {
  const auto refusal = [](const Options& options) {
    return std::string(MakePolicy("pollux", options).status().message());
  };
  EXPECT_EQ(
      refusal({{"generations", 0}}),
      "policy \"pollux\": option \"generations\" needs a whole number from 1 to 10000, got 0");
  EXPECT_EQ(
      refusal({{"generations", 2.5}}),
      "policy \"pollux\": option \"generations\" needs a whole number from 1 to 10000, got 2.5");
  EXPECT_EQ(
      refusal({{"population", 99.5}}),
      "policy \"pollux\": option \"population\" needs a whole number from 2 to 10000, got 99.5");
  EXPECT_THAT(refusal({{"seed", 0.5}}), HasSubstr("option \"seed\" needs a whole number"));
}

}  // namespace
}  // namespace espalier
