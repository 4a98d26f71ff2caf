// What every row of the table of policies must keep to, on thousands of random pools: 100,000 for
// our own policy.

#include <algorithm>
#include <set>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/allocator/random_pools.h"
#include "tests/base/plugin_rows.h"

namespace espalier {

namespace {

constexpr std::string_view kOurs = "promise_goodput";

class PolicyContract : public ::testing::TestWithParam<std::string> {
 protected:
  // How many pools of `share` parts of all: fewer for who searches long.
  int Pools(double share) const {
    int all = 16'000;
    if (GetParam() == kOurs) all = 100'000;
    if (GetParam() == "pollux") all = 2'000;
#ifdef __SANITIZE_ADDRESS__
    all /= 8;  // each takes many times as long; the plain build goes through all
#endif
    return static_cast<int>(all * share);
  }
  std::unique_ptr<Policy> MakeIt() const {
    Options options;
    if (GetParam() == "pollux") options = {{"generations", 8}, {"population", 20}};
    return Make(GetParam(), options);
  }
  Random Seeded(std::uint64_t salt) const { return Random(MixSeed(salt, GetParam())); }
};

// What a change must keep to: the trial's bounds, one GPU type and island, and nothing new on a
// node that drains.
void ExpectLegalChange(const Pool& pool, const Job& job, const AllocationDecision& decision) {
  EXPECT_GT(decision.reason.size(), 10u);
  EXPECT_EQ(decision.reason.find("  "), std::string::npos) << decision.reason;
  EXPECT_NE(decision.reason.back(), ' ') << decision.reason;
  EXPECT_NE(decision.placement, job.current) << decision.reason;
  const int total = Total(decision.placement);
  if (total == 0) return;
  EXPECT_GE(total, LeastOf(job)) << decision.reason;
  EXPECT_LE(total, MostOf(job)) << decision.reason;
  EXPECT_TRUE(job.sizes.empty() || MayHold(job, total)) << decision.reason;
  int on_one = 0;  // the most that one node of its kind could hold
  std::set<SlotKind> kinds;
  for (const NodeCapacity& node : pool.nodes) {
    const int bound = job.most_on_node > 0 ? job.most_on_node : node.slots;
    const auto place = decision.placement.begin()->first;
    const auto first = std::find_if(pool.nodes.begin(), pool.nodes.end(),
                                    [&](const NodeCapacity& n) { return n.id == place; });
    if (!node.draining && first != pool.nodes.end() && KindOf(*first) == KindOf(node)) {
      on_one = std::max(on_one, std::min(bound, node.slots));
    }
    const auto now = decision.placement.find(node.id);
    if (now == decision.placement.end()) continue;
    kinds.insert(KindOf(node));
    const auto before = job.current.find(node.id);
    const int had = before == job.current.end() ? 0 : before->second;
    EXPECT_LE(now->second, std::max(bound, had)) << decision.reason;
    if (node.draining) {
      EXPECT_LE(now->second, had) << decision.reason;
    }
  }
  EXPECT_LE(kinds.size(), 1u) << decision.reason;
  const bool shrinks =
      std::all_of(decision.placement.begin(), decision.placement.end(), [&job](const auto& share) {
        const auto before = job.current.find(share.first);
        return before != job.current.end() && before->second >= share.second;
      });
  if (job.undivided && !shrinks && decision.placement.size() > 1) {
    EXPECT_LT(on_one, total) << decision.reason;
  }
}

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
    const auto job = std::find_if(pool.jobs.begin(), pool.jobs.end(),
                                  [&](const Job& j) { return j.id == decision.trial; });
    ASSERT_NE(job, pool.jobs.end());
    ExpectLegalChange(pool, *job, decision);
  }
}

std::string ReasonOf(const std::vector<AllocationDecision>& decisions, TrialId trial) {
  for (const AllocationDecision& decision : decisions) {
    if (decision.trial == trial) return decision.reason;
  }
  return "unchanged";
}

void ExpectSame(const std::vector<AllocationDecision>& a,
                const std::vector<AllocationDecision>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t d = 0; d < a.size(); ++d) {
    EXPECT_EQ(a[d].trial, b[d].trial);
    EXPECT_EQ(a[d].placement, b[d].placement);
    EXPECT_EQ(a[d].reason, b[d].reason);
  }
}

TEST_P(PolicyContract, IsLegalSettledAndBlindToTheOrderOfThings) {
  auto policy = MakeIt();
  Random random = Seeded(1);
  for (int i = 0; i < Pools(0.5) && !HasFailure(); ++i) {
    SCOPED_TRACE(i);
    const Pool pool = RandomPool(random);
    Pool turned = pool;
    ShuffleAll(random, turned.nodes);
    ShuffleAll(random, turned.jobs);
    if (!policy->settles()) policy = MakeIt();
    const auto decisions = policy->Allocate(pool);
    ExpectLegal(pool, decisions);
    for (const AllocationDecision& further : policy->Allocate(Applied(pool, decisions))) {
      ADD_FAILURE() << "not settled: trial " << further.trial.value << " " << further.reason;
    }
    if (!policy->settles()) policy = MakeIt();
    ExpectSame(decisions, policy->Allocate(turned));
  }
}

// Jobs with lists of sizes, with a bound on one node, and that are not to be spread in vain.
TEST_P(PolicyContract, KeepsToSizesAndToWhatOneNodeMayHold) {
  auto policy = MakeIt();
  Random random = Seeded(6);
  for (int i = 0; i < Pools(0.004) && !HasFailure(); ++i) {
    SCOPED_TRACE(i);
    Pool pool = RandomPool(random);
    for (Job& job : pool.jobs) {
      job.undivided = random.Below(3) == 0;
      if (random.Below(3) == 0) job.most_on_node = 1 + IntBelow(random, 4);
      if (job.pinned_slots > 0 || random.Below(3) == 0) continue;
      std::set<int> sizes{1 + IntBelow(random, 3)};
      for (int more = IntBelow(random, 4); more > 0; --more) sizes.insert(1 + IntBelow(random, 12));
      job.sizes.assign(sizes.begin(), sizes.end());
      job.min_slots = job.sizes.front();
      job.max_slots = job.sizes.back();
    }
    if (!policy->settles()) policy = MakeIt();
    const auto decisions = policy->Allocate(pool);
    ExpectLegal(pool, decisions);
    if (GetParam() != kOurs) continue;
    for (const AllocationDecision& further : policy->Allocate(Applied(pool, decisions))) {
      ADD_FAILURE() << "not settled: trial " << further.trial.value << " " << further.reason;
    }
    const auto held = After(pool, decisions);
    for (const Job& job : pool.jobs) {
      const int total = Total(held.at(job.id));
      EXPECT_TRUE(total == 0 || job.sizes.empty() || MayHold(job, total)) << total;
    }
  }
}

// What a policy asks for that knows of no sizes is brought down to one; ours shares the rest out.
TEST(WithinBounds, TwoTrialsOfFourOrTwoSlotsShareSix) {
  for (const std::string name : {"promise_goodput", "fluid", "pollux"}) {
    SCOPED_TRACE(name);
    Pool pool{{Node(1, 6)},
              {RunningJob(1, {{NodeId(1), 2}}, 0.5), RunningJob(2, {{NodeId(1), 2}}, 0.5)}};
    for (Job& job : pool.jobs) {
      job.goodput = Scaling(0.02);
      job.fixed_batch = false;
      job.sizes = {2, 4};
      job.min_slots = 2;
      job.max_slots = 4;
    }
    const auto policy = Make(name);
    for (int round = 0; round < 3; ++round) {
      pool = Applied(pool, policy->Allocate(pool));
      pool.now_s += 120;
    }
    std::vector<int> sizes = Sizes(pool, {});
    std::sort(sizes.begin(), sizes.end());
    EXPECT_EQ(sizes.front(), 2);
    EXPECT_TRUE(sizes.back() == 4 || (sizes.back() == 2 && name != "promise_goodput"));
  }
}

// A size is let go as a whole where another trial waits.
TEST(PromiseGoodput, TakesBackASizeForAWaitingTrial) {
  Pool pool{{Node(1, 4)}, {RunningJob(1, {{NodeId(1), 4}}, 0.5), WaitingJob(2)}};
  pool.jobs[0].sizes = {2, 4};
  pool.jobs[0].min_slots = 2;
  const auto decisions = Make("promise_goodput")->Allocate(pool);
  EXPECT_EQ(Sizes(pool, decisions), (std::vector<int>{2, 2}));
  EXPECT_THAT(ReasonOf(decisions, TrialId(2)), ::testing::HasSubstr("from trial 1"));
}

TEST(PromiseGoodput, GrowsToTheNextSizeHoweverFarThatIs) {
  Pool pool{{Node(1, 8)}, {RunningJob(1, {{NodeId(1), 1}}, 0.5)}};
  pool.jobs[0].sizes = {1, 6, 8};
  EXPECT_EQ(Sizes(pool, Make("promise_goodput")->Allocate(pool)), (std::vector<int>{6}));
}

// One slot is free on each node; two would be on one as soon as another trial ends. Three are more
// than a node has.
TEST(Policies, WhatFitsOnOneNodeWaitsForOne) {
  for (const std::string& name : Policies().Names()) {
    SCOPED_TRACE(name);
    Pool pool{{Node(1, 2), Node(2, 2)},
              {RunningJob(1, {{NodeId(1), 1}}, 0.5, 1), RunningJob(2, {{NodeId(2), 1}}, 0.5, 1),
               WaitingJob(3, 2)}};
    Job& job = pool.jobs[2];
    job.min_slots = 2;
    job.undivided = true;
    EXPECT_LE(After(pool, Make(name)->Allocate(pool)).at(job.id).size(), 1u);
    Pool empty{pool.nodes, {job}};
    empty.jobs[0].min_slots = empty.jobs[0].max_slots = 3;
    EXPECT_EQ(After(empty, Make(name)->Allocate(empty)).at(job.id).size(), 2u);
  }
}

TEST(Policies, ABoundOnOneNodeSpreadsATrial) {
  for (const std::string& name : Policies().Names()) {
    SCOPED_TRACE(name);
    Pool pool{{Node(1, 4), Node(2, 4)}, {WaitingJob(1, 4)}};
    pool.jobs[0].min_slots = 4;
    pool.jobs[0].most_on_node = 2;
    const auto held = After(pool, Make(name)->Allocate(pool));
    EXPECT_EQ(held.at(TrialId(1)), (Placement{{NodeId(1), 2}, {NodeId(2), 2}}));
    pool.nodes.pop_back();
    EXPECT_TRUE(Make(name)->Allocate(pool).empty()) << "there is no room for all";
  }
}

// Lost and shrunken nodes, in the middle of whatever else happens.
TEST_P(PolicyContract, MendsLostSlots) {
  const auto policy = MakeIt();
  Random random = Seeded(2);
  for (int i = 0; i < Pools(0.2) && !HasFailure(); ++i) {
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

// A node dies once all is settled. A job that had nothing there goes on, and one that has its
// minimum left goes on where it is, under each policy that does not pause one trial for another.
TEST_P(PolicyContract, LosesWithANodeWhatWasOnIt) {
  auto policy = MakeIt();
  Random random = Seeded(3);
  for (int i = 0; i < Pools(0.2) && !HasFailure(); ++i) {
    SCOPED_TRACE(i);
    Pool pool = RandomPool(random);
    if (!policy->settles()) policy = MakeIt();
    pool = Applied(pool, policy->Allocate(pool));
    const NodeId dead = pool.nodes[random.Below(pool.nodes.size())].id;
    std::erase_if(pool.nodes, [dead](const NodeCapacity& node) { return node.id == dead; });
    const auto decisions = policy->Allocate(pool);
    ExpectLegal(pool, decisions);
    if (policy->preempts()) continue;
    const auto held = After(pool, decisions);
    for (const Job& job : pool.jobs) {
      Placement kept = job.current;
      kept.erase(dead);
      const bool drains = std::any_of(pool.nodes.begin(), pool.nodes.end(), [&](const auto& node) {
        return node.draining && kept.contains(node.id);
      });
      if (drains) continue;
      if (Total(kept) < LeastOf(job)) continue;
      const Placement& now = held.at(job.id);
      EXPECT_FALSE(now.empty()) << "trial " << job.id.value
                                << " lost all: " << ReasonOf(decisions, job.id);
      // Ours may exchange whole places, and says for whom.
      if (GetParam() == kOurs) continue;
      EXPECT_TRUE(std::any_of(now.begin(), now.end(),
                              [&](const auto& share) { return kept.contains(share.first); }))
          << "trial " << job.id.value
          << " was moved off what it had left: " << ReasonOf(decisions, job.id);
    }
  }
}

// Whatever took its slots: a cut between its nodes, say, of which the pool shows nothing.
TEST_P(PolicyContract, FillsUpOrPausesWhoHasFewerThanItsMinimum) {
  auto policy = MakeIt();
  Random random = Seeded(5);
  for (int i = 0; i < Pools(0.02) && !HasFailure(); ++i) {
    SCOPED_TRACE(i);
    Pool pool = RandomPool(random);
    std::set<TrialId> below;
    for (Job& job : pool.jobs) {
      if (job.current.empty() || job.pinned_slots > 0 || random.Below(3) != 0) continue;
      job.min_slots = Total(job.current) + 1 + IntBelow(random, 3);
      job.max_slots = std::max(job.max_slots, job.min_slots);
      below.insert(job.id);
    }
    if (!policy->settles()) policy = MakeIt();
    const auto decisions = policy->Allocate(pool);
    const auto held = After(pool, decisions);
    for (const Job& job : pool.jobs) {
      const int total = Total(held.at(job.id));
      EXPECT_TRUE(!below.contains(job.id) || total == 0 || total >= job.min_slots) << total;
    }
  }
}

TEST(MendTest, WhoIsPinnedToMoreThanItHasTrainsOnMeanwhile) {
  Pool pool{{Node(1, 1)}, {RunningJob(1, {{NodeId(1), 1}}, 0.5)}};
  pool.jobs[0].pinned_slots = 2;
  EXPECT_TRUE(Make("fixed")->Allocate(pool).empty());
  pool.jobs[0].min_slots = 2;
  const auto decisions = Make("fixed")->Allocate(pool);
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_TRUE(decisions[0].placement.empty());
  EXPECT_THAT(decisions[0].reason, ::testing::HasSubstr("has fewer than its minimum of 2"));
}

TEST_P(PolicyContract, LeavesJoiningTrialsAlone) {
  const auto policy = MakeIt();
  Random random = Seeded(4);
  for (int i = 0; i < Pools(0.1) && !HasFailure(); ++i) {
    SCOPED_TRACE(i);
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
  const auto policy = MakeIt();
  EXPECT_TRUE(policy->Allocate({}).empty());
  EXPECT_TRUE(policy->Allocate({{Node(1, 4)}, {}}).empty());
  EXPECT_TRUE(policy->Allocate({{}, {WaitingJob(1)}}).empty());
  EXPECT_TRUE(policy->Allocate({{Node(1, 0)}, {WaitingJob(1)}}).empty());
}

TEST(Policies, TellWhatTheyDoAndTake) { ExpectTold(Policies().Infos()); }

// A pool's own is sent and kept as numbers.
TEST(Policies, TakeNumbersAlone) {
  for (const PluginInfo& policy : Policies().Infos()) {
    for (const PluginOption& option : policy.options) EXPECT_FALSE(option.wordy()) << option.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, PolicyContract, ::testing::ValuesIn(Policies().Names()),
                         [](const auto& row) { return row.param; });

// The first trial that waits and could run in the pool: nobody else may hold what it needs.
TEST(PromiseGoodput, StarvesNoWaitingTrial) {
  const auto policy = Make(std::string(kOurs));
  Random random(5);
  for (int i = 0; i < 10'000 && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    const Pool pool = RandomPool(random);
    const auto held = After(pool, policy->Allocate(pool));
    int capacity = 0;
    std::map<NodeId, int> over;  // what could be had on each node
    for (const NodeCapacity& node : pool.nodes) {
      if (node.draining) continue;
      capacity += node.slots;
      over[node.id] = node.slots;
    }
    for (const Job& job : pool.jobs) {
      // A trial gives from any of its nodes down to its minimum.
      int kept = LeastOf(job);
      for (const auto& [node, slots] : held.at(job.id)) {
        if (!over.contains(node)) continue;
        const int stays = std::min(slots, kept);
        kept -= stays;
        over[node] -= stays;
      }
    }
    int obtainable = 0;
    for (const auto& [node, slots] : over) obtainable += slots;
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
            "policy \"greedy\" is unknown; known are " + absl::StrJoin(Policies().Names(), ", "));
}

}  // namespace
}  // namespace espalier
