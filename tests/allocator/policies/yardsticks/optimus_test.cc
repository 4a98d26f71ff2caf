#include "allocator/policies/policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/allocator/pools.h"

namespace espalier {
namespace {

Job Known(std::int64_t id, std::vector<double> step_s, double steps_left) {
  Job job = WaitingJob(id, static_cast<int>(step_s.size()));
  job.known_step_s = std::make_shared<const std::vector<double>>(std::move(step_s));
  job.steps_left = steps_left;
  return job;
}

TEST(Optimus, GivesSlotsWhereTheySaveMostTime) {
  // The second slot saves the first job 100 s, the second job 300 s, and the third one 200 s more.
  const Pool pool{{Node(1, 4)}, {Known(1, {4, 3, 2.9}, 100), Known(2, {4, 3, 2.3, 2.2}, 300)}};
  const auto held = After(pool, Make("optimus")->Allocate(pool));
  EXPECT_EQ(Total(held.at(TrialId(1))), 1);
  EXPECT_EQ(Total(held.at(TrialId(2))), 3);
}

TEST(Optimus, LeavesSlotsFreeThatSaveNothing) {
  const Pool pool{{Node(1, 4)}, {Known(1, {4, 3, 3.5, 2}, 100)}};
  EXPECT_EQ(Total(Make("optimus")->Allocate(pool)[0].placement), 2);
}

TEST(Optimus, GoesByTheModelWithoutKnownTimes) {
  Pool pool{{Node(1, 4)}, {WaitingJob(1), WaitingJob(2)}};
  for (Job& job : pool.jobs) job.work_left_s = 1000;
  pool.jobs[0].goodput = Scaling(2);  // two slots are slower than one
  pool.jobs[1].goodput = Scaling(0.01);
  pool.jobs[0].max_profiled_replicas = pool.jobs[1].max_profiled_replicas = 4;
  const auto held = After(pool, Make("optimus")->Allocate(pool));
  EXPECT_EQ(Total(held.at(TrialId(1))), 1);
  EXPECT_EQ(Total(held.at(TrialId(2))), 3);
}

// Three minima of five fit the slots of four nodes of four, and only two of them the nodes, one
// that spans nodes each.
TEST(Optimus, PausesNobodyForOneThatWaitsWhereOnlySpanningKeepsItOut) {
  Pool pool{{Node(1, 4), Node(2, 4), Node(3, 4), Node(4, 4)},
            {WaitingJob(1), WaitingJob(2), WaitingJob(3)}};
  for (Job& job : pool.jobs) {
    job.min_slots = 5;
    job.max_slots = 12;
    job.work_left_s = 1000;
    job.goodput = Scaling(0.01);
    job.max_profiled_replicas = 12;
  }
  pool.jobs[0].running = pool.jobs[1].running = true;
  pool.jobs[0].current = {{NodeId(1), 4}, {NodeId(2), 1}};
  pool.jobs[1].current = {{NodeId(3), 4}, {NodeId(4), 1}};
  const auto held = After(pool, Make("optimus")->Allocate(pool));
  EXPECT_GE(Total(held.at(TrialId(1))), 5);
  EXPECT_GE(Total(held.at(TrialId(2))), 5);
  EXPECT_EQ(Total(held.at(TrialId(3))), 0);
}

TEST(Optimus, SharesSpannedNodesOnlyWhenTold) {
  const Pool pool{{Node(1, 3), Node(2, 3)},
                  {Known(1, {8, 7, 5, 1}, 100), Known(2, {8, 7, 5, 1}, 100)}};
  const auto strict = After(pool, Make("optimus")->Allocate(pool));
  EXPECT_TRUE(strict.at(TrialId(1)).size() < 2 || strict.at(TrialId(2)).size() < 2);
  const auto shared = After(pool, Make("optimus", {{"share_spanned", 1}})->Allocate(pool));
  EXPECT_EQ(Total(shared.at(TrialId(1))) + Total(shared.at(TrialId(2))), 6);
}

}  // namespace
}  // namespace espalier
