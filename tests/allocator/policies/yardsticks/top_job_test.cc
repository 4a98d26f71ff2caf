#include "allocator/policies/policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/allocator/pools.h"

namespace espalier {
namespace {

Job Ranked(std::int64_t id, Placement current, double cost, int max_slots = 8) {
  Job job = RunningJob(id, std::move(current), 0.5, max_slots);
  job.cost = cost;
  return job;
}

TEST(TopJob, GivesAllFreeSlotsToTheBest) {
  const Pool pool{{Node(1, 8)},
                  {Ranked(1, {{NodeId(1), 1}}, 0.4), Ranked(2, {{NodeId(1), 1}}, 0.2),
                   Ranked(3, {{NodeId(1), 1}}, 0.3)}};
  const auto decisions = Make("top_job")->Allocate(pool);
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(decisions[0].trial, TrialId(2));
  EXPECT_EQ(decisions[0].placement, (Placement{{NodeId(1), 6}}));
  EXPECT_EQ(decisions[0].reason, "grows 1 -> 6: takes what is free as the best trial so far");
}

TEST(TopJob, TakesNothingBackFromAnEarlierBest) {
  const Pool pool{{Node(1, 8)},
                  {Ranked(1, {{NodeId(1), 5}}, 0.4), Ranked(2, {{NodeId(1), 1}}, 0.2)}};
  const auto decisions = Make("top_job")->Allocate(pool);
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(decisions[0].placement, (Placement{{NodeId(1), 3}}));
}

TEST(TopJob, PrefersWaitingTrialsAndKeepsToTheMaximum) {
  Pool pool{{Node(1, 8)}, {Ranked(1, {{NodeId(1), 1}}, 0.4, 4), WaitingJob(2)}};
  const auto held = After(pool, Make("top_job")->Allocate(pool));
  EXPECT_EQ(Total(held.at(TrialId(1))), 4);
  EXPECT_EQ(Total(held.at(TrialId(2))), 1);
}

TEST(TopJob, WaitsForAFirstValue) {
  const Pool pool{{Node(1, 8)}, {RunningJob(1, {{NodeId(1), 1}}, 0.5)}};
  EXPECT_TRUE(Make("top_job")->Allocate(pool).empty());
}

}  // namespace
}  // namespace espalier
