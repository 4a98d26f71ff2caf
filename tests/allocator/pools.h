#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "allocator/policies/policy.h"
#include "base/random.h"
#include "gtest/gtest.h"

namespace espalier {

inline int IntBelow(Random& random, int n) {
  return static_cast<int>(random.Below(static_cast<std::uint64_t>(n)));
}

inline Job WaitingJob(std::int64_t id, int max_slots = 8) {
  Job job;
  job.id = TrialId(id);
  job.study = StudyId(1);
  job.order = id;
  job.max_slots = max_slots;
  return job;
}

inline Job RunningJob(std::int64_t id, Placement current, double promise, int max_slots = 8) {
  Job job = WaitingJob(id, max_slots);
  job.running = true;
  for (const auto& [node, slots] : current) job.max_profiled_replicas = std::max(slots, 1);
  job.current = std::move(current);
  job.promise = promise;
  return job;
}

inline NodeCapacity Node(std::int64_t id, int slots) { return {.id = NodeId(id), .slots = slots}; }

inline int Total(const Placement& placement) {
  int total = 0;
  for (const auto& [node, slots] : placement) total += slots;
  return total;
}

// A model of a trial whose steps take `sync_share` of the time of one lone step to synchronise.
inline GoodputModel Scaling(double sync_share) {
  return GoodputModel({.alpha_c = 1e-8,
                       .beta_c = 0.001,
                       .alpha_n = 0.064 * sync_share * 2,
                       .beta_n = 1e-8,
                       .alpha_r = 0.064 * sync_share,
                       .beta_r = 1e-8,
                       .gamma = 1},
                      {}, {.initial = 64, .max_global = 64, .max_atomic = 64});
}

// What each trial holds after the decisions.
inline std::map<TrialId, Placement> After(const Pool& pool,
                                          const std::vector<AllocationDecision>& decisions) {
  std::map<TrialId, Placement> held;
  for (const Job& job : pool.jobs) held[job.id] = job.current;
  for (const AllocationDecision& decision : decisions) held[decision.trial] = decision.placement;
  return held;
}

// The pool once the decisions are carried out.
inline Pool Applied(Pool pool, const std::vector<AllocationDecision>& decisions) {
  const auto held = After(pool, decisions);
  for (Job& job : pool.jobs) {
    job.current = held.at(job.id);
    job.running = !job.current.empty();
  }
  return pool;
}

// How many slots each trial of the pool holds after the decisions, in the pool's order.
inline std::vector<int> Sizes(const Pool& pool, const std::vector<AllocationDecision>& decisions) {
  const auto held = After(pool, decisions);
  std::vector<int> sizes;
  for (const Job& job : pool.jobs) sizes.push_back(Total(held.at(job.id)));
  return sizes;
}

inline std::unique_ptr<Policy> Make(const std::string& name, const Options& options = {}) {
  auto policy = MakePolicy(name, options);
  EXPECT_TRUE(policy.ok()) << policy.status();
  return *std::move(policy);
}

}  // namespace espalier
