#include "allocator/policies/policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/allocator/pools.h"

namespace espalier {
namespace {

Job Asking(std::int64_t id, int slots) {
  Job job = WaitingJob(id);
  job.requested_slots = slots;
  return job;
}

TEST(Tiresias, GivesWhatIsAskedForOrNothing) {
  const Pool pool{{Node(1, 4)}, {Asking(1, 3), Asking(2, 2), Asking(3, 1)}};
  const auto held = After(pool, Make("tiresias")->Allocate(pool));
  EXPECT_EQ(Total(held.at(TrialId(1))), 3);
  EXPECT_EQ(Total(held.at(TrialId(2))), 0);
  EXPECT_EQ(Total(held.at(TrialId(3))), 1);
}

TEST(Tiresias, LetsNewJobsGoBeforeThoseThatHadTheirShare) {
  const auto policy = Make("tiresias", {{"queue_slot_s", 100}});
  Pool pool{{Node(1, 4)}, {Asking(1, 4)}};
  pool = Applied(pool, policy->Allocate(pool));
  pool.jobs.push_back(Asking(2, 4));
  pool.jobs[0].held_s = 24;
  EXPECT_TRUE(policy->Allocate(pool).empty());
  pool.jobs[0].held_s = 25;
  const auto decisions = policy->Allocate(pool);
  ASSERT_EQ(decisions.size(), 2u);
  EXPECT_TRUE(decisions[0].placement.empty());
  EXPECT_EQ(decisions[0].reason, "pauses in queue 2: jobs before it need the slots it asks for");
  EXPECT_EQ(Total(decisions[1].placement), 4);
}

TEST(Tiresias, KeepsToTheLimitsOfAJob) {
  Pool pool{{Node(1, 4)}, {Asking(1, 9)}};
  pool.jobs[0].max_slots = 2;
  EXPECT_EQ(Total(Make("tiresias")->Allocate(pool)[0].placement), 2);
}

}  // namespace
}  // namespace espalier
