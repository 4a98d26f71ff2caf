// bench: decision_time - the allocator's decisions: how long they take, and how good they are
// beside the exact optimum and Pollux's search

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "allocator/allocation/best_allocation.h"
#include "allocator/allocation/objective.h"
#include "allocator/policies/policy.h"
#include "allocator/policies/yardsticks/pollux_fitness.h"
#include "allocator/pool/admission.h"
#include "allocator/pool/board.h"
#include "base/check.h"
#include "base/random.h"
#include "nlohmann/json.hpp"
#include "tests/allocator/allocation/exact_allocation.h"
#include "tests/allocator/pollux_objective.h"
#include "tests/benchmarks/programs/smoke.h"

namespace espalier {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

double Milliseconds(Clock::time_point from) {
  return std::chrono::duration<double, std::milli>(Clock::now() - from).count();
}

// Processor time of this thread: a decision is one thread's work, and other processes of a busy
// machine say nothing about it.
double ThreadMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

int IntBelow(Random& random, int n) {
  return static_cast<int>(random.Below(static_cast<std::uint64_t>(n)));
}

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(std::ceil(q * last))];
}

GoodputModel RandomModel(Random& random) {
  const auto batch = static_cast<std::int64_t>(std::pow(2, random.Uniform(4, 9)));
  const double step = std::exp(random.Uniform(std::log(0.02), std::log(1.0)));
  const double local = step * random.Uniform(0, 0.4);
  return GoodputModel({.alpha_c = step * random.Uniform(0, 0.3) + 1e-8,
                       .beta_c = step / static_cast<double>(batch),
                       .alpha_n = local * random.Uniform(1, 3) + 1e-8,
                       .beta_n = step * random.Uniform(0, 0.02),
                       .alpha_r = local + 1e-8,
                       .beta_r = step * random.Uniform(0, 0.01),
                       .gamma = random.Uniform(1, 4)},
                      {random.Uniform(), random.Uniform(0, 20)},
                      {.initial = batch, .max_global = batch * 64, .max_atomic = batch});
}

Job RandomJob(Random& random, std::int64_t id, int most) {
  Job job;
  job.id = TrialId(id);
  job.study = StudyId(1);
  job.order = id;
  job.max_slots = most;
  job.max_profiled_replicas = 1 << IntBelow(random, 1 + static_cast<int>(std::log2(most)));
  job.promise = random.Uniform();
  job.fixed_batch = random.Below(2) == 0;
  job.goodput = RandomModel(random);
  job.resize_cost_s = random.Uniform(0.05, 2);
  job.age_s = random.Uniform(0, 5000);
  job.resizes = IntBelow(random, 10);
  return job;
}

Pool EmptyPool(int nodes, int slots) {
  Pool pool;
  for (int n = 1; n <= nodes; ++n) pool.nodes.push_back({.id = NodeId(n), .slots = slots});
  return pool;
}

void Apply(Pool& pool, const std::vector<AllocationDecision>& decisions) {
  std::map<TrialId, const Placement*> changed;
  for (const AllocationDecision& d : decisions) changed[d.trial] = &d.placement;
  for (Job& job : pool.jobs) {
    if (const auto at = changed.find(job.id); at != changed.end()) job.current = *at->second;
    job.running = !job.current.empty();
    int held = 0;
    for (const auto& [node, count] : job.current) held += count;
    job.max_profiled_replicas = std::max(job.max_profiled_replicas, held);
  }
}

// What happens to a pool from one decision to the next: reports move promises and models, trials
// end, others arrive; now and then a burst of kills, as at a rung.
void Evolve(Random& random, Pool& pool, int jobs, int most, std::int64_t& next_id) {
  const bool burst = random.Below(20) == 0;
  std::erase_if(pool.jobs, [&](const Job&) { return random.Below(burst ? 3 : 40) == 0; });
  for (Job& job : pool.jobs) {
    job.since_resize_s = 10;
    job.age_s += 10;
    if (random.Below(3) != 0) continue;
    job.promise = std::clamp(job.promise + random.Uniform(-0.1, 0.1), 0.0, 1.0);
    if (random.Below(5) == 0) {
      const GoodputModel& model = *job.goodput;
      GradientNoise noise = model.noise();
      noise.var *= random.Uniform(0.9, 1.2);
      job.goodput = GoodputModel(model.params(), noise, model.bounds());
    }
  }
  while (static_cast<int>(pool.jobs.size()) < jobs && random.Below(3) != 0) {
    pool.jobs.push_back(RandomJob(random, next_id++, most));
  }
}

// Milliseconds of each decision: cold ones, by a policy that has seen nothing, and those of pools
// that evolve.
std::vector<double> Times(int jobs, int nodes, int slots, int pools, int steps) {
  std::vector<double> times;
  for (int p = 0; p < pools; ++p) {
    Random random(MixSeed(21, static_cast<std::uint64_t>(p)));
    const int most = nodes * slots;
    std::int64_t next_id = 1;
    Pool pool = EmptyPool(nodes, slots);
    while (static_cast<int>(pool.jobs.size()) < jobs) {
      pool.jobs.push_back(RandomJob(random, next_id++, most));
    }
    auto policy = *MakePolicy("promise_goodput", {});
    for (int step = 0; step < steps; ++step) {
      const double from = ThreadMilliseconds();
      const auto decisions = policy->Allocate(pool);
      times.push_back(ThreadMilliseconds() - from);
      Apply(pool, decisions);
      Evolve(random, pool, jobs, most, next_id);
    }
  }
  return times;
}

// ---- The optimum -------------------------------------------------------------------------------

double WorstOfOptimum(int pools) {
  double worst = 1;
  for (int p = 0; p < pools; ++p) {
    Random random(MixSeed(22, static_cast<std::uint64_t>(p)));
    // 4 x 4 slots are about what can be looked at in full.
    const int nodes = 1 + IntBelow(random, 4);
    const int slots = nodes == 4 ? 2 + IntBelow(random, 2) : 2 + IntBelow(random, 3);
    Pool pool = EmptyPool(nodes, slots);
    auto policy = *MakePolicy("promise_goodput", {});
    std::int64_t next_id = 1;
    const int jobs = 2 + IntBelow(random, nodes * slots);
    while (static_cast<int>(pool.jobs.size()) < jobs) {
      pool.jobs.push_back(RandomJob(random, next_id++, nodes * slots));
    }
    for (int step = 0; step < 4; ++step) {
      Board board(pool);
      AdmitWaiting(board, /*reclaim=*/true);
      PromiseObjective objective(board, {});
      const double best = ExactWorth(board, objective);
      BestAllocation(board, objective, 0);
      const double found = TotalWorth(board, objective);
      if (best > 0) worst = std::min(worst, found / best);
      Apply(pool, policy->Allocate(pool));
      Evolve(random, pool, jobs, nodes * slots, next_id);
    }
  }
  return worst;
}

// ---- Pollux's search ---------------------------------------------------------------------------

Placement PlacementFrom(const Json& runs) {
  Placement placement;
  for (const Json& run : runs) placement[NodeId(run[0].get<int>() + 1)] = run[1].get<int>();
  return placement;
}

struct Cycle {
  Pool pool;
  std::vector<Placement> found{};  // by Pollux's search
};

std::vector<Cycle> RecordedCycles(const std::string& path) {
  std::ifstream file(path);
  ESPALIER_CHECK(file.good(), "the recorded cycles are there");
  std::vector<Cycle> cycles;
  for (std::string line; std::getline(file, line);) {
    Cycle cycle{.pool = EmptyPool(16, 4)};
    std::int64_t id = 1;
    for (const Json& row : Json::parse(line)) {
      Job job;
      job.id = TrialId(id);
      job.order = id++;
      job.fixed_batch = false;
      job.age_s = row["age"];
      job.resizes = row["restarts"];
      job.max_slots = row["max"];
      job.max_profiled_replicas = job.max_slots;
      job.current = PlacementFrom(row["base"]);
      job.running = !job.current.empty();
      if (row.contains("perf")) {
        const Json& p = row["perf"];
        const Json& b = row["batch"];
        job.goodput = GoodputModel({p[0], p[1], p[2], p[3], p[4], p[5], p[6]},
                                   {row["grad"][0], row["grad"][1]},
                                   {.initial = b[0],
                                    .max_global = b[1],
                                    .min_atomic = b[2],
                                    .max_atomic = b[3],
                                    .accumulation = true});
      }
      cycle.found.push_back(PlacementFrom(row["result"]));
      cycle.pool.jobs.push_back(std::move(job));
    }
    cycles.push_back(std::move(cycle));
  }
  return cycles;
}

std::vector<Placement> PlacementsAfter(const Pool& pool,
                                       const std::vector<AllocationDecision>& decisions) {
  std::map<TrialId, Placement> held;
  for (const Job& job : pool.jobs) held[job.id] = job.current;
  for (const AllocationDecision& d : decisions) held[d.trial] = d.placement;
  std::vector<Placement> placements;
  for (const Job& job : pool.jobs) placements.push_back(held[job.id]);
  return placements;
}

// The fitness of what our search finds where it looks for Pollux's, which may leave jobs without
// slots.
double OurFitness(const Pool& pool) {
  Board board(pool);
  Mend(board, /*reclaim=*/false);
  PolluxObjective objective(board, pool);
  BestAllocation(board, objective, /*min_resize_interval_s=*/0,
                 {.polish_steps = 2e7, .polish_draws = 500, .near_bound = 1e-6});
  return PolluxFitness(pool, PlacementsAfter(pool, board.Decisions()));
}

double WorstOverRecorded(const std::vector<Cycle>& cycles) {
  double worst = 1e9;
  int i = 0;
  for (const Cycle& cycle : cycles) {
    const double ratio = OurFitness(cycle.pool) / PolluxFitness(cycle.pool, cycle.found);
    if (ratio < 1 - 1e-9) std::printf("  cycle %d: %.6f of the search's fitness\n", i, ratio);
    worst = std::min(worst, ratio);
    ++i;
  }
  return worst;
}

// A burst: recorded jobs that all arrive at once, or whose neighbours have all been killed.
double WorstOverBursts(const std::vector<Cycle>& cycles,
                       const std::vector<std::pair<int, int>>& bursts) {
  double worst = 1e9;
  for (const auto& [jobs, nodes] : bursts) {
    Random random(
        MixSeed(23, static_cast<std::uint64_t>(jobs) * static_cast<std::uint64_t>(nodes)));
    Pool pool = EmptyPool(nodes, 4);
    std::int64_t id = 1;
    while (static_cast<int>(pool.jobs.size()) < jobs) {
      const Cycle& cycle = cycles[random.Below(cycles.size())];
      Job job = cycle.pool.jobs[random.Below(cycle.pool.jobs.size())];
      job.id = TrialId(id);
      job.order = id++;
      job.current.clear();
      job.running = false;
      pool.jobs.push_back(std::move(job));
    }
    auto search = *MakePolicy("pollux", {});
    const auto from = Clock::now();
    const auto found = PlacementsAfter(pool, search->Allocate(pool));
    const double search_ms = Milliseconds(from);
    const auto ours_from = Clock::now();
    const double ours = OurFitness(pool);
    const double ours_ms = Milliseconds(ours_from);
    const double theirs = PolluxFitness(pool, found);
    std::printf("  %2d jobs x %2d nodes: fitness %.4f in %.1f ms, genetic search %.4f in %.0f ms\n",
                jobs, nodes, ours, ours_ms, theirs, search_ms);
    worst = std::min(worst, ours / theirs);
  }
  return worst;
}

// How much is looked at.
struct Extent {
  int middle_pools = 40;
  int large_pools = 10;
  int large_steps = 30;
  int exact_pools = 400;
  std::size_t cycles = SIZE_MAX;
  // Jobs and nodes.
  std::vector<std::pair<int, int>> bursts = {{4, 16},  {8, 16},  {16, 16},
                                             {32, 16}, {64, 16}, {64, 64}};
};
const Extent kSmoke{.middle_pools = 1,
                    .large_pools = 1,
                    .large_steps = 2,
                    .exact_pools = 5,
                    .cycles = 2,
                    .bursts = {{4, 16}}};

int Main(bool times_only, const Extent& extent) {
  const std::vector<double> middle = Times(32, 16, 4, extent.middle_pools, 100);
  std::printf("32 jobs x 64 slots: median %.2f ms, p99 %.2f ms, worst %.2f ms of %zu decisions\n",
              Quantile(middle, 0.5), Quantile(middle, 0.99), Quantile(middle, 1), middle.size());
  const std::vector<double> large = Times(1000, 512, 8, extent.large_pools, extent.large_steps);
  std::printf(
      "1000 jobs x 4096 slots: median %.1f ms, p99 %.1f ms, worst %.1f ms of %zu decisions\n",
      Quantile(large, 0.5), Quantile(large, 0.99), Quantile(large, 1), large.size());
  if (times_only) return 0;
  const double optimality = WorstOfOptimum(extent.exact_pools);
  std::printf("worst share of the exact optimum: %.5f\n", optimality);
  std::vector<Cycle> cycles = RecordedCycles("tests/benchmarks/data/pollux_cycles.jsonl");
  cycles.resize(std::min(cycles.size(), extent.cycles));
  const double recorded = WorstOverRecorded(cycles);
  std::printf("worst fitness beside the search's on %zu recorded cycles: %.4f\n", cycles.size(),
              recorded);
  const double bursts = WorstOverBursts(cycles, extent.bursts);
  const Json figures = {{"p99_ms_32x64", Quantile(middle, 0.99)},
                        {"p99_ms_1000x4096", Quantile(large, 0.99)},
                        {"optimality_min", optimality},
                        {"over_ga_min", std::min(recorded, bursts)}};
  std::printf("%s\n", figures.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace espalier

// With the argument "times" only those are measured.
int main(int argc, char** argv) {
  return espalier::Main(
      argc > 1 && argv[1] == std::string("times"),
      espalier::benchmarks::IsSmoke(argc, argv) ? espalier::kSmoke : espalier::Extent{});
}
