#include "allocator/policies/policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/allocator/pools.h"

namespace espalier {
namespace {

TEST(FixedPolicy, GivesEachTheMinimumInOrderAndKeepsIt) {
  Pool pool{{Node(1, 4)}, {WaitingJob(2), WaitingJob(1), RunningJob(3, {{NodeId(1), 2}}, 1.0)}};
  pool.jobs[0].min_slots = 2;
  const auto decisions = Make("fixed")->Allocate(pool);
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(decisions[0].trial, TrialId(1));
  EXPECT_EQ(Total(decisions[0].placement), 1);
  EXPECT_EQ(decisions[0].reason, "starts on 1 slot: promise 0.50, 1 slot was free");
}

TEST(FixedPolicy, TakesNothingFromARunningTrial) {
  const Pool pool{{Node(1, 4)}, {RunningJob(1, {{NodeId(1), 4}}, 0.1), WaitingJob(2)}};
  EXPECT_TRUE(Make("fixed")->Allocate(pool).empty());
}

TEST(FixedPolicy, TakesNoOptions) {
  EXPECT_THAT(std::string(MakePolicy("fixed", {{"min_gain", 1}}).status().message()),
              ::testing::HasSubstr("has no option \"min_gain\"; it takes none"));
}

}  // namespace
}  // namespace espalier
