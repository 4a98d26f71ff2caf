#include "allocator/policies/yardsticks/pollux_fitness.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "tests/allocator/pools.h"

namespace espalier {
namespace {

// Cycles of the artifact's own simulator (petuum/adaptdl, branch osdi21-artifact, Apache License
// 2.0) on its workload 6, with the allocations that its search chose. The values expected were
// computed by the artifact's code.
Pool SixteenNodes() {
  Pool pool;
  for (int n = 1; n <= 16; ++n) pool.nodes.push_back(Node(n, 4));
  return pool;
}

Job Recorded(std::int64_t id, double age_s, int resizes, ThroughputParams params,
             GradientNoise noise, BatchBounds bounds) {
  Job job = WaitingJob(id, 64);
  job.fixed_batch = false;
  job.age_s = age_s;
  job.resizes = resizes;
  job.goodput.emplace(params, noise, bounds);
  return job;
}

Placement Fours(const std::vector<int>& nodes) {
  Placement placement;
  for (const int node : nodes) placement[NodeId(node)] = 4;
  return placement;
}

constexpr BatchBounds kCifar{
    .initial = 128, .max_global = 4096, .min_atomic = 32, .max_atomic = 1024};

TEST(PolluxFitness, IsTheArtifactsForTwoJobsOfWhichOneRestarts) {
  Pool pool = SixteenNodes();
  pool.jobs = {Recorded(1, 187, 1,
                        {0.025170950600768974, 0.000616223287443395, 0.0036168846279452022,
                         1.1000000000000001e-08, 0.003288076934495638, 1e-08, 1.1881037196530502},
                        {0.9600242222918904, 1.4190487203153792}, kCifar),
               Recorded(2, 86, 0,
                        {0.05129499388470461, 0.0004017901831556793, 1.1000000000000001e-08,
                         1.1000000000000001e-08, 1e-08, 1e-08, 1.0009999738311823},
                        {8.947307535897329, 5.066593295150894}, kCifar)};
  pool.jobs[0].current = {{NodeId(11), 2}};
  pool.jobs[1].current = {{NodeId(4), 1}};
  const Placement grown = {{NodeId(10), 1}, {NodeId(15), 3}};
  EXPECT_NEAR(PolluxFitness(pool, {grown, {{NodeId(4), 1}}}), 0.0980230081, 1e-9);
}

TEST(PolluxFitness, IsTheArtifactsForThreeJobsOnManyNodes) {
  Pool pool = SixteenNodes();
  pool.jobs = {
      Recorded(1, 1474, 9,
               {0.2784578922493817, 0.02257122776679546, 1.0907067261147965, 0.0042224496956823265,
                0.24926472741771863, 0.11217050402843527, 2.414296119263419},
               {0.0029790665521264, 0.448580056684356},
               {.initial = 20, .max_global = 640, .min_atomic = 10, .max_atomic = 80}),
      Recorded(2, 1065, 5,
               {0.44297161794702217, 0.03699986105103482, 1.43871936013465, 1e-08,
                0.07510301219052438, 0.009284305713769826, 1.1438973242569401},
               {43032304393.29889, 45868579275033.31},
               {.initial = 12, .max_global = 384, .min_atomic = 4, .max_atomic = 12}),
      Recorded(3, 485, 4,
               {0.016650896249845656, 0.0007095846467849215, 0.20097607671851384, 1e-08,
                0.04039584473174681, 0.004700293733882486, 3.366445490127224},
               {0.1073982789540231, 5.574297618865967}, kCifar)};
  pool.jobs[0].current = Fours({3, 9, 11, 15});
  pool.jobs[1].current = Fours({2, 6, 7, 8, 10, 12, 13, 14});
  pool.jobs[2].current = Fours({1, 4, 5, 16});
  std::vector<Placement> kept;
  for (const Job& job : pool.jobs) kept.push_back(job.current);
  EXPECT_NEAR(PolluxFitness(pool, kept), 0.2215666104, 1e-9);

  // Whoever changes pays with its restarts so far.
  std::vector<Placement> swapped = kept;
  std::swap(swapped[0], swapped[2]);
  EXPECT_LT(PolluxFitness(pool, swapped), PolluxFitness(pool, kept));
  // The geometric mean is milder to those who have little.
  EXPECT_GT(PolluxFitness(pool, kept, {.fairness = 0}), PolluxFitness(pool, kept));
}

TEST(PolluxFitness, CountsReplicasByTheFairShareWithoutAModel) {
  Pool pool = SixteenNodes();
  pool.jobs = {WaitingJob(1), WaitingJob(2)};
  for (Job& job : pool.jobs) job.age_s = 1e12;
  // Half a fair share of 32 slots each: half the scaled speedup of a node's share of the pool.
  const Placement sixteen = Fours({1, 2, 3, 4});
  const Placement others = Fours({5, 6, 7, 8});
  EXPECT_NEAR(PolluxFitness(pool, {sixteen, others}), 0.5 / 4 + 1e-3, 1e-9);
}

TEST(PolluxFitness, IsNothingWithoutJobsOrSlots) {
  EXPECT_EQ(PolluxFitness({}, {}), 0);
  EXPECT_EQ(PolluxFitness({{Node(1, 0)}, {WaitingJob(1)}}, {{}}), 0);
}

}  // namespace
}  // namespace espalier
