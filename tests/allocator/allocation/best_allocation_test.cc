#include "allocator/allocation/best_allocation.h"

#include <cmath>
#include <set>

#include "allocator/pool/admission.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "tests/allocator/allocation/exact_allocation.h"
#include "tests/allocator/pollux_objective.h"
#include "tests/allocator/pools.h"

namespace espalier {
namespace {

GoodputModel RandomModel(Random& random) {
  const auto batch = static_cast<std::int64_t>(std::pow(2, random.Uniform(4, 9)));
  const double step = random.Uniform(0.05, 0.5);
  const double local = step * random.Uniform(0, 0.4);
  return GoodputModel({.alpha_c = step * random.Uniform(0, 0.3) + 1e-8,
                       .beta_c = step / static_cast<double>(batch),
                       .alpha_n = local * random.Uniform(1, 3) + 1e-8,
                       .beta_n = step * random.Uniform(0, 0.05),
                       .alpha_r = local + 1e-8,
                       .beta_r = step * random.Uniform(0, 0.02),
                       .gamma = random.Uniform(1, 4)},
                      {random.Uniform(), random.Uniform(0, 5)},
                      {.initial = batch, .max_global = batch * 16, .max_atomic = batch});
}

// A pool of running trials, each somewhere legal, mostly on one slot.
Pool SmallPool(Random& random, int nodes, int slots, int jobs) {
  Pool pool;
  std::vector<int> free;
  for (int n = 1; n <= nodes; ++n) {
    pool.nodes.push_back(Node(n, slots));
    free.push_back(slots);
  }
  for (int i = 1; i <= jobs; ++i) {
    Job job = WaitingJob(i, nodes * slots);
    job.max_profiled_replicas = 1 + IntBelow(random, nodes * slots);
    job.promise = random.Uniform();
    job.fixed_batch = random.Below(2) == 0;
    job.goodput = RandomModel(random);
    job.age_s = random.Uniform(0, 2000);
    job.resizes = IntBelow(random, 8);
    job.resize_cost_s = random.Below(2) == 0 ? 0.1 : random.Uniform(0, 10);
    const int node = IntBelow(random, nodes);
    const int wanted = 1 + IntBelow(random, random.Below(2) == 0 ? slots : 1);
    const int taken = std::min(wanted, free[static_cast<std::size_t>(node)]);
    if (taken > 0) {
      free[static_cast<std::size_t>(node)] -= taken;
      job.current = {{NodeId(node + 1), taken}};
      job.running = true;
      job.max_profiled_replicas = std::max(job.max_profiled_replicas, taken);
    }
    pool.jobs.push_back(std::move(job));
  }
  return pool;
}

struct Ratios {
  double least = 1;
  double sum = 0;
  int count = 0;
  void Add(double ratio) {
    least = std::min(least, ratio);
    sum += ratio;
    ++count;
  }
};

TEST(BestAllocation, IsWithinAPercentOfTheBestOfAll) {
  Random random(11);
  Ratios ratios;
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE(i);
    const int nodes = 1 + IntBelow(random, 3);
    const Pool pool = SmallPool(random, nodes, 2 + IntBelow(random, 3), 2 + IntBelow(random, 5));
    Board board(pool);
    AdmitWaiting(board, /*reclaim=*/true);
    PromiseObjective objective(board, {});
    const double best = ExactWorth(board, objective);
    BestAllocation(board, objective, 0);
    const double found = TotalWorth(board, objective);
    EXPECT_LE(found, best + 1e-9);
    EXPECT_GE(found, 0.99 * best);
    ratios.Add(found / best);
  }
  EXPECT_GE(ratios.sum / ratios.count, 0.9995);
  RecordProperty("least", std::to_string(ratios.least));
  std::printf("least %.5f mean %.6f\n", ratios.least, ratios.sum / ratios.count);
}

// Some have two to four sizes, and some at most so many slots on a node.
TEST(BestAllocation, IsWithinAPercentOfTheBestOfAllThatKeepToSizes) {
  Random random(13);
  Ratios ratios;
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE(i);
    const int nodes = 1 + IntBelow(random, 3);
    Pool pool = SmallPool(random, nodes, 2 + IntBelow(random, 3), 2 + IntBelow(random, 5));
    for (Job& job : pool.jobs) {
      if (random.Below(4) == 0) continue;
      std::set<int> sizes{job.current.empty() ? 1 : Total(job.current)};
      while (sizes.size() < 3 && random.Below(4) != 0) sizes.insert(1 + IntBelow(random, 8));
      job.sizes.assign(sizes.begin(), sizes.end());
      job.min_slots = job.sizes.front();
      job.max_slots = job.sizes.back();
      if (random.Below(3) == 0) job.most_on_node = Total(job.current) + 1;
    }
    Board board(pool);
    AdmitWaiting(board, /*reclaim=*/true);
    PromiseObjective objective(board, {});
    const double best = ExactWorth(board, objective);
    BestAllocation(board, objective, 0);
    const double found = TotalWorth(board, objective);
    EXPECT_LE(found, best + 1e-9);
    EXPECT_GE(found, 0.99 * best);
    ratios.Add(found / best);
    for (std::size_t j = 0; j < board.size(); ++j) {
      const Holder& holder = board.holder(j);
      EXPECT_TRUE(holder.total == 0 || MayHold(*holder.job, holder.total)) << holder.total;
      for (const Share& share : holder.shares) {
        EXPECT_LE(share.slots, board.most_for(j, static_cast<std::size_t>(share.node)));
      }
    }
  }
  EXPECT_GE(ratios.sum / ratios.count, 0.999);
}

TEST(BestAllocation, FindsTheBestPolluxFitness) {
  Random random(12);
  Ratios ratios;
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE(i);
    const int nodes = 1 + IntBelow(random, 3);
    const Pool pool = SmallPool(random, nodes, 2 + IntBelow(random, 3), 2 + IntBelow(random, 5));
    Board board(pool);
    PolluxObjective objective(board, pool);
    const double best = ExactWorth(board, objective);
    BestAllocation(board, objective, 0);
    const double found = TotalWorth(board, objective);
    EXPECT_LE(found, best + 1e-9);
    ratios.Add(best / found);  // of harmonic means
    EXPECT_GE(best / found, 0.99);
  }
  std::printf("least %.5f mean %.6f\n", ratios.least, ratios.sum / ratios.count);
}

}  // namespace
}  // namespace espalier
