#include "allocator/policies/policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/allocator/pools.h"

namespace espalier {
namespace {

Job Scalable(std::int64_t id, double sync_share) {
  Job job = WaitingJob(id, 16);
  job.max_profiled_replicas = 8;
  job.goodput = Scaling(sync_share);
  job.age_s = 1e6;
  return job;
}

TEST(Sia, GivesMoreToWhomMoreBrings) {
  const Pool pool{{Node(1, 8)}, {Scalable(1, 0.01), Scalable(2, 3)}};
  EXPECT_EQ(Sizes(pool, Make("sia")->Allocate(pool)), (std::vector<int>{4, 1}));
}

TEST(Sia, DividesEquallyAmongEquals) {
  const Pool pool{{Node(1, 4), Node(2, 4)}, {Scalable(1, 0.01), Scalable(2, 0.01)}};
  const auto decisions = Make("sia")->Allocate(pool);
  EXPECT_EQ(Sizes(pool, decisions), (std::vector<int>{4, 4}));
  for (const AllocationDecision& decision : decisions) EXPECT_EQ(decision.placement.size(), 1u);
}

TEST(Sia, OnlyAdmitsBetweenTwoRounds) {
  const auto policy = Make("sia");
  Pool pool{{Node(1, 8)}, {Scalable(1, 0.01)}, /*now_s=*/10};
  EXPECT_EQ(Sizes(pool, policy->Allocate(pool)), (std::vector<int>{8}));
  pool.jobs[0].current = {{NodeId(1), 4}};
  pool.jobs.push_back(Scalable(2, 0.01));
  pool.now_s = 40;
  EXPECT_EQ(Sizes(pool, policy->Allocate(pool)), (std::vector<int>{4, 1}));
  pool.now_s = 70;
  EXPECT_EQ(Sizes(pool, policy->Allocate(pool)), (std::vector<int>{4, 4}));
}

TEST(Sia, PicksTheTypeOnWhichATrialIsFaster) {
  Pool pool{{Node(1, 4), Node(2, 4)}, {Scalable(1, 0.01), Scalable(2, 0.01)}};
  pool.nodes[0].gpu_type = "A100";
  pool.nodes[1].gpu_type = "T4";
  // Twice as slow a microbatch on the T4 for the first one only.
  ThroughputParams slow = Scaling(0.01).params();
  slow.beta_c *= 4;
  pool.jobs[0].goodput_by_gpu_type.emplace("T4",
                                           GoodputModel(slow, {}, pool.jobs[0].goodput->bounds()));
  const auto held = After(pool, Make("sia")->Allocate(pool));
  EXPECT_EQ(held.at(TrialId(1)), (Placement{{NodeId(1), 4}}));
  EXPECT_EQ(held.at(TrialId(2)), (Placement{{NodeId(2), 4}}));
}

TEST(Sia, RefusesAFairnessThatIsNotNegative) {
  EXPECT_FALSE(MakePolicy("sia", {{"fairness", 0.5}}).ok());
}

}  // namespace
}  // namespace espalier
