// What every row of the table of policies must keep to, on thousands of random pools.

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/allocator/policies/pools.h"
#include "tuner/base/random.h"

namespace espalier {
namespace {

int LeastOf(const Job& job) { return job.pinned_slots > 0 ? job.pinned_slots : job.min_slots; }
int MostOf(const Job& job) {
  return job.pinned_slots > 0 ? job.pinned_slots : std::max(job.min_slots, job.max_slots);
}
int IntBelow(Random& random, int n) {
  return static_cast<int>(random.Below(static_cast<std::uint64_t>(n)));
}

Job RandomJob(Random& random, std::int64_t id) {
  Job job = WaitingJob(id, 1 + IntBelow(random, 9));
  job.min_slots = random.Below(5) == 0 ? 1 + IntBelow(random, 3) : 1;
  if (random.Below(12) == 0) job.pinned_slots = 1 + IntBelow(random, 4);
  job.promise = random.Below(8) == 0 ? 0 : random.Uniform();
  job.max_profiled_replicas = 1 + IntBelow(random, 4);
  job.work_left_s = random.Below(2) == 0 ? 0 : random.Uniform(0.01, 100);
  job.resize_cost_s = random.Uniform(0, 0.5);
  job.order = IntBelow(random, 50);
  if (random.Below(4) == 0) return job;
  const double batch = std::pow(2, random.Uniform(2, 9));
  job.fixed_batch = random.Below(2) == 0;
  job.global_batch = static_cast<std::int64_t>(batch);
  job.goodput = GoodputModel(
      {random.Uniform(0, 0.02) + 1e-8, random.Uniform(0, 0.002) + 1e-8, random.Uniform(0, 0.1),
       random.Uniform(0, 0.02), random.Uniform(0, 0.05), random.Uniform(0, 0.01),
       random.Uniform(1, 3)},
      {random.Uniform(), random.Uniform(0, 10)},
      {.initial = job.global_batch,
       .max_global = job.global_batch * 8,
       .max_atomic = std::max<std::int64_t>(1, job.global_batch / (1 + IntBelow(random, 3)))});
  return job;
}

// Legal placements: within capacity, and at most one trial that spans nodes on each of them.
Pool RandomPool(Random& random) {
  Pool pool;
  const int nodes = 1 + IntBelow(random, 4);
  std::map<NodeId, int> free;
  for (int n = 1; n <= nodes; ++n) {
    pool.nodes.push_back(Node(n, IntBelow(random, 9)));
    free[NodeId(n)] = pool.nodes.back().slots;
  }
  std::set<NodeId> spanned;
  const int jobs = IntBelow(random, 12);
  for (int i = 1; i <= jobs; ++i) {
    Job job = RandomJob(random, i);
    if (random.Below(3) != 0) {
      int wanted = LeastOf(job) + IntBelow(random, MostOf(job) - LeastOf(job) + 1);
      Placement placement;
      for (auto& [node, slots] : free) {
        if (!placement.empty() &&
            (spanned.contains(node) || spanned.contains(placement.begin()->first)))
          continue;
        const int taken = std::min(slots, wanted);
        if (taken == 0) continue;
        placement[node] = taken;
        wanted -= taken;
      }
      if (wanted == 0) {
        for (const auto& [node, slots] : placement) {
          free[node] -= slots;
          if (placement.size() > 1) spanned.insert(node);
        }
        job.current = placement;
        job.running = true;
      }
    }
    pool.jobs.push_back(std::move(job));
  }
  return pool;
}

class PolicyContract : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr int kPools = 4000;
};

void ExpectLegal(const Pool& pool, const std::vector<AllocationDecision>& decisions) {
  const auto held = After(pool, decisions);
  std::map<NodeId, int> used;
  std::map<NodeId, int> spanning;
  for (const auto& [trial, placement] : held) {
    for (const auto& [node, slots] : placement) {
      EXPECT_GT(slots, 0);
      used[node] += slots;
      if (placement.size() > 1) ++spanning[node];
    }
  }
  for (const NodeCapacity& node : pool.nodes) {
    EXPECT_LE(used[node.id], node.slots);
    EXPECT_LE(spanning[node.id], 1);
    used.erase(node.id);
  }
  EXPECT_TRUE(used.empty()) << "slots on a node that is not there";
  std::set<TrialId> decided;
  for (const AllocationDecision& decision : decisions) {
    EXPECT_TRUE(decided.insert(decision.trial).second);
    EXPECT_GT(decision.reason.size(), 10u);
    EXPECT_EQ(decision.reason.find("  "), std::string::npos) << decision.reason;
    EXPECT_NE(decision.reason.back(), ' ') << decision.reason;
    const auto job = std::find_if(pool.jobs.begin(), pool.jobs.end(),
                                  [&](const Job& j) { return j.id == decision.trial; });
    EXPECT_NE(decision.placement, job->current);
    const int total = Total(decision.placement);
    if (total == 0) continue;
    EXPECT_GE(total, LeastOf(*job)) << decision.reason;
    EXPECT_LE(total, MostOf(*job)) << decision.reason;
  }
}

Pool Applied(Pool pool, const std::vector<AllocationDecision>& decisions) {
  const auto held = After(pool, decisions);
  for (Job& job : pool.jobs) {
    job.current = held.at(job.id);
    job.running = !job.current.empty();
  }
  return pool;
}

TEST_P(PolicyContract, IsLegalRepeatableAndSettled) {
  const auto policy = Make(GetParam());
  Random random(MixSeed(1, GetParam()));
  for (int i = 0; i < kPools && !HasFailure(); ++i) {
    SCOPED_TRACE(i);
    const Pool pool = RandomPool(random);
    const auto decisions = policy->Allocate(pool);
    ExpectLegal(pool, decisions);

    Pool turned = pool;
    std::reverse(turned.nodes.begin(), turned.nodes.end());
    std::reverse(turned.jobs.begin(), turned.jobs.end());
    const auto again = policy->Allocate(turned);
    ASSERT_EQ(decisions.size(), again.size());
    for (std::size_t d = 0; d < decisions.size(); ++d) {
      EXPECT_EQ(decisions[d].trial, again[d].trial);
      EXPECT_EQ(decisions[d].placement, again[d].placement);
      EXPECT_EQ(decisions[d].reason, again[d].reason);
    }
    for (const AllocationDecision& further : policy->Allocate(Applied(pool, decisions))) {
      ADD_FAILURE() << "not settled: trial " << further.trial.value << " " << further.reason;
    }
  }
}

TEST_P(PolicyContract, MendsLostSlots) {
  const auto policy = Make(GetParam());
  Random random(MixSeed(2, GetParam()));
  for (int i = 0; i < kPools && !HasFailure(); ++i) {
    SCOPED_TRACE(i);
    Pool pool = RandomPool(random);
    for (Job& job : pool.jobs) {
      job.joining = !job.current.empty() && random.Below(6) == 0;
      job.since_resize_s = random.Uniform(0, 4);
    }
    NodeCapacity& node = pool.nodes[random.Below(pool.nodes.size())];
    node.slots = IntBelow(random, node.slots + 1);
    if (random.Below(3) == 0) pool.nodes.erase(pool.nodes.begin());
    const auto decisions = policy->Allocate(pool);
    ExpectLegal(pool, decisions);
    for (const AllocationDecision& decision : decisions) {
      for (const Job& job : pool.jobs) {
        if (job.id != decision.trial || !job.joining) continue;
        EXPECT_THAT(decision.reason, ::testing::HasSubstr("node "));
      }
    }
  }
}

TEST_P(PolicyContract, LeavesJoiningTrialsAlone) {
  const auto policy = Make(GetParam());
  Random random(MixSeed(3, GetParam()));
  for (int i = 0; i < kPools && !HasFailure(); ++i) {
    Pool pool = RandomPool(random);
    for (Job& job : pool.jobs) job.joining = !job.current.empty();
    for (const AllocationDecision& decision : policy->Allocate(pool)) {
      for (const Job& job : pool.jobs) {
        if (job.id != decision.trial) continue;
        EXPECT_TRUE(job.current.empty()) << decision.reason;
      }
    }
  }
}

TEST_P(PolicyContract, SettlesForNoNodesAndNoJobs) {
  const auto policy = Make(GetParam());
  EXPECT_TRUE(policy->Allocate({}).empty());
  EXPECT_TRUE(policy->Allocate({{Node(1, 4)}, {}}).empty());
  EXPECT_TRUE(policy->Allocate({{}, {WaitingJob(1)}}).empty());
  EXPECT_TRUE(policy->Allocate({{Node(1, 0)}, {WaitingJob(1)}}).empty());
}

INSTANTIATE_TEST_SUITE_P(All, PolicyContract, ::testing::ValuesIn(PolicyNames()),
                         [](const auto& row) { return row.param; });

// The first trial that waits and could run in the pool: nobody else may hold what it needs.
TEST(PromiseGoodput, StarvesNoWaitingTrial) {
  const auto policy = Make("promise_goodput");
  Random random(5);
  for (int i = 0; i < 4000 && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    const Pool pool = RandomPool(random);
    const auto held = After(pool, policy->Allocate(pool));
    int capacity = 0;
    int obtainable = 0;
    for (const NodeCapacity& node : pool.nodes) capacity += node.slots;
    obtainable = capacity;
    for (const Job& job : pool.jobs) {
      obtainable -= std::min(Total(held.at(job.id)), LeastOf(job));
    }
    const Job* first = nullptr;
    for (const Job& job : pool.jobs) {
      if (!held.at(job.id).empty() || LeastOf(job) > capacity) continue;
      if (!first || std::pair(job.order, job.id) < std::pair(first->order, first->id)) first = &job;
    }
    // A larger minimum may also wait for a node without another spanning trial.
    if (!first || LeastOf(*first) > 1) continue;
    EXPECT_EQ(obtainable, 0);
  }
}

TEST(MakePolicy, NamesUnknownPolicyAndListsTheKnown) {
  EXPECT_EQ(std::string(MakePolicy("greedy", {}).status().message()),
            "policy \"greedy\" is unknown; known are " + absl::StrJoin(PolicyNames(), ", "));
}

}  // namespace
}  // namespace espalier
