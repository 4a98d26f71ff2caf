#include "allocator/policies/policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/allocator/pools.h"

namespace espalier {
namespace {

Job Measured(std::int64_t id, double step_s) {
  Job job = RunningJob(id, {{NodeId(1), 1}}, 0.5, 16);
  job.max_profiled_replicas = 8;
  job.known_step_s = std::make_shared<const std::vector<double>>(1, step_s);
  return job;
}

TEST(Fluid, GivesSlotsInProportionToWidths) {
  // Heights of 1, 1 and 6: floors of 3/8, 3/8 and 18/8 are widths of 1, 1 and 2.
  const Pool pool{{Node(1, 8)}, {Measured(1, 1), Measured(2, 1), Measured(3, 6)}};
  EXPECT_EQ(Sizes(pool, Make("fluid")->Allocate(pool)), (std::vector<int>{2, 2, 4}));
  EXPECT_EQ(Sizes(pool, Make("fluid", {{"max_width", 1}})->Allocate(pool)),
            (std::vector<int>{3, 3, 2}));
}

TEST(Fluid, KnowsHeightsByTheModel) {
  Pool pool{{Node(1, 6)}, {Measured(1, 1), Measured(2, 1), Measured(3, 1)}};
  for (Job& job : pool.jobs) {
    job.known_step_s = nullptr;
    job.goodput = Scaling(0.1);
    job.global_batch = 64;
  }
  // Three times the samples of a step, three times its time: 3 * 3/5 is a width of 1 still.
  pool.jobs[2].global_batch = 192;
  EXPECT_EQ(Sizes(pool, Make("fluid")->Allocate(pool)), (std::vector<int>{2, 2, 2}));
  pool.jobs[2].global_batch = std::int64_t{64} * 8;
  EXPECT_EQ(Sizes(pool, Make("fluid")->Allocate(pool)), (std::vector<int>{2, 1, 3}));
}

TEST(Fluid, LeavesUnmeasuredTrialsTheirMinimum) {
  Pool pool{{Node(1, 8)}, {Measured(1, 1), Measured(2, 1)}};
  pool.jobs[1].known_step_s = nullptr;
  EXPECT_EQ(Sizes(pool, Make("fluid")->Allocate(pool)), (std::vector<int>{7, 1}));
}

TEST(Fluid, DividesAnewOnlyWhenTheGroupChanges) {
  const auto policy = Make("fluid");
  Pool pool{{Node(1, 8)}, {Measured(1, 1), Measured(2, 1)}};
  EXPECT_EQ(Sizes(pool, policy->Allocate(pool)), (std::vector<int>{4, 4}));
  pool.jobs[0].current = pool.jobs[1].current = {{NodeId(1), 4}};
  pool.jobs[1].known_step_s = std::make_shared<const std::vector<double>>(1, 50.0);
  EXPECT_TRUE(policy->Allocate(pool).empty());
  pool.jobs.push_back(Measured(3, 1));
  pool.jobs.back().current = {};
  // Heights of 1, 50 and 1: widths of 1, 2 and 1.
  EXPECT_EQ(Sizes(pool, policy->Allocate(pool)), (std::vector<int>{2, 4, 2}));
}

}  // namespace
}  // namespace espalier
