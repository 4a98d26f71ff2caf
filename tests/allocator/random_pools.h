#pragma once

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "base/random.h"
#include "tests/allocator/pools.h"

namespace espalier {

inline int LeastOf(const Job& job) {
  return job.pinned_slots > 0 ? job.pinned_slots : job.min_slots;
}
inline int MostOf(const Job& job) {
  return job.pinned_slots > 0 ? job.pinned_slots : std::max(job.min_slots, job.max_slots);
}

inline GoodputModel RandomModel(Random& random, std::int64_t batch) {
  return GoodputModel({random.Uniform(0, 0.02) + 1e-8, random.Uniform(0, 0.002) + 1e-8,
                       random.Uniform(0, 0.1), random.Uniform(0, 0.02), random.Uniform(0, 0.05),
                       random.Uniform(0, 0.01), random.Uniform(1, 3)},
                      {random.Uniform(), random.Uniform(0, 10)},
                      {.initial = batch,
                       .max_global = batch * 8,
                       .max_atomic = std::max<std::int64_t>(1, batch / (1 + IntBelow(random, 3)))});
}

inline Job RandomJob(Random& random, std::int64_t id, const std::vector<std::string>& types) {
  Job job = WaitingJob(id, 1 + IntBelow(random, 9));
  job.study = StudyId(1 + IntBelow(random, 3));
  job.min_slots = random.Below(5) == 0 ? 1 + IntBelow(random, 3) : 1;
  if (random.Below(12) == 0) job.pinned_slots = 1 + IntBelow(random, 4);
  job.promise = random.Below(8) == 0 ? 0 : random.Uniform();
  job.max_profiled_replicas = 1 + IntBelow(random, 4);
  job.work_left_s = random.Below(2) == 0 ? 0 : random.Uniform(0.01, 100);
  job.time_left_s = random.Below(3) == 0 ? random.Uniform(0.01, 100) : 0;
  job.resize_cost_s = random.Uniform(0, 0.5);
  job.order = IntBelow(random, 50);
  job.age_s = random.Uniform(0, 200);
  job.attained_service = random.Uniform(0, 500);
  job.resizes = IntBelow(random, 6);
  job.requested_slots = IntBelow(random, 5);
  job.steps_left = random.Below(2) == 0 ? 0 : random.Uniform(1, 1000);
  if (random.Below(3) != 0) job.cost = random.Uniform(-1, 1);
  if (random.Below(4) == 0) return job;
  job.fixed_batch = random.Below(2) == 0;
  job.global_batch = static_cast<std::int64_t>(std::pow(2, random.Uniform(2, 9)));
  job.goodput = RandomModel(random, job.global_batch);
  for (const std::string& type : types) {
    if (random.Below(3) != 0) continue;
    job.goodput_by_gpu_type.emplace(type, RandomModel(random, job.global_batch));
  }
  return job;
}

// Gives the job free slots within its bounds, of one kind, if it finds them.
inline void PlaceAtRandom(Random& random, const Pool& pool, Job& job, std::map<NodeId, int>& free,
                          std::set<NodeId>& spanned) {
  int wanted = LeastOf(job) + IntBelow(random, MostOf(job) - LeastOf(job) + 1);
  Placement placement;
  const NodeCapacity* first = nullptr;
  for (const NodeCapacity& node : pool.nodes) {
    if (!placement.empty() &&
        (spanned.contains(node.id) || spanned.contains(placement.begin()->first))) {
      continue;
    }
    if (first != nullptr && KindOf(*first) != KindOf(node)) continue;
    const int taken = std::min(free[node.id], wanted);
    if (taken == 0) continue;
    first = &node;
    placement[node.id] = taken;
    wanted -= taken;
  }
  if (wanted > 0) return;
  for (const auto& [node, slots] : placement) {
    free[node] -= slots;
    if (placement.size() > 1) spanned.insert(node);
  }
  job.current = placement;
  job.running = true;
}

// Legal placements: within capacity, at most one trial that spans nodes on each of them, one GPU
// type and island a trial. Some nodes drain, are spot or cannot talk to others, some studies have a
// larger share.
inline Pool RandomPool(Random& random) {
  Pool pool;
  const int nodes = 1 + IntBelow(random, 4);
  const std::vector<std::string> types =
      random.Below(3) == 0 ? std::vector<std::string>{"A100", "T4"} : std::vector<std::string>{""};
  std::map<NodeId, int> free;
  const bool some_drain = random.Below(4) == 0;
  const bool some_apart = random.Below(4) == 0;
  for (int n = 1; n <= nodes; ++n) {
    NodeCapacity node = Node(n, IntBelow(random, 9));
    node.gpu_type = types[random.Below(types.size())];
    node.draining = some_drain && random.Below(3) == 0;
    node.spot = random.Below(6) == 0;
    if (some_apart) node.island = IntBelow(random, 2);
    free[node.id] = node.slots;
    pool.nodes.push_back(std::move(node));
  }
  std::set<NodeId> spanned;
  const int jobs = IntBelow(random, 12);
  for (int i = 1; i <= jobs; ++i) {
    Job job = RandomJob(random, i, types);
    if (random.Below(3) != 0) PlaceAtRandom(random, pool, job, free, spanned);
    pool.jobs.push_back(std::move(job));
  }
  if (random.Below(3) == 0) pool.shares[StudyId(1)] = random.Uniform(0.5, 3);
  pool.now_s = random.Uniform(0, 1000);
  return pool;
}

template <typename T>
void ShuffleAll(Random& random, std::vector<T>& things) {
  for (std::size_t i = things.size(); i > 1; --i) std::swap(things[i - 1], things[random.Below(i)]);
}

}  // namespace espalier
