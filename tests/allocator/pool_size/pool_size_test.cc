#include "allocator/pool_size/pool_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/allocator/pools.h"
#include "tests/base/plugin_rows.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

class PoolSize : public ::testing::TestWithParam<std::string> {
 protected:
  // A pool of `nodes` engine nodes of 4 slots each, with trials that scale so well.
  Pool PoolOf(int nodes, int jobs, double sync_share) {
    Pool pool;
    for (int n = 1; n <= nodes; ++n) pool.nodes.push_back(Node(n, 4));
    for (int j = 1; j <= jobs; ++j) {
      Job job = RunningJob(j, {}, 0.5, 64);
      job.goodput = Scaling(sync_share);
      job.max_profiled_replicas = 32;
      pool.jobs.push_back(job);
    }
    return pool;
  }

  PoolSizeRequest Request(const Pool& pool, int nodes) {
    PoolSizeRequest request{
        pool, {}, {.slots = 4, .start_s = 60, .min_nodes = 1, .max_nodes = 10}, nodes};
    return request;
  }

  PoolSizeDecision Decide(const std::string& rule, const PoolSizeRequest& request,
                          const Options& options = {}) {
    auto made = MakePoolSizeRule(rule, options);
    EXPECT_TRUE(made.ok()) << made.status();
    return (*made)->Decide(request);
  }
};

TEST_P(PoolSize, StaysWithinItsBoundsAndSaysWhy) {
  for (int jobs = 0; jobs <= 20; jobs += 4) {
    for (int nodes = 0; nodes <= 12; nodes += 3) {
      const Pool pool = PoolOf(nodes, jobs, 0.1);
      const PoolSizeDecision decision = Decide(GetParam(), Request(pool, nodes));
      EXPECT_GE(decision.nodes, 1);
      EXPECT_LE(decision.nodes, 10);
      EXPECT_FALSE(decision.reason.empty());
      if (jobs == 0) {
        EXPECT_EQ(decision.nodes, 1);
      }
    }
  }
}

TEST_P(PoolSize, WhatItWantsItWantsAgain) {
  for (const int jobs : {1, 3, 9, 30}) {
    Pool pool = PoolOf(2, jobs, 0.05);
    const int wanted = Decide(GetParam(), Request(pool, 2)).nodes;
    pool = PoolOf(wanted, jobs, 0.05);
    EXPECT_EQ(Decide(GetParam(), Request(pool, wanted)).nodes, wanted);
  }
}

TEST_P(PoolSize, RefusesUnknownOptions) {
  EXPECT_THAT(std::string(MakePoolSizeRule(GetParam(), {{"x", 1}}).status().message()),
              HasSubstr("\"x\""));
}

TEST(PoolSizeRules, TellWhatTheyDoAndTake) { ExpectTold(PoolSizeRules().Infos()); }

TEST(PoolSizeRules, AreNamedAsSuchWhereTheyRefuse) {
  const auto error = [](const char* rule, const Options& options) {
    return std::string(MakePoolSizeRule(rule, options).status().message());
  };
  EXPECT_EQ(error("utility", {}),
            "pool-size rule \"utility\" is unknown; known are utility_price, utility_band, "
            "least_cost");
  EXPECT_EQ(error("utility_price", {{"x", 1}}),
            "pool-size rule \"utility_price\" has no option \"x\"; it has min_utility");
  EXPECT_EQ(error("least_cost", {{"margin", 1}}),
            "pool-size rule \"least_cost\": option \"margin\" needs a number from 0 to 0.9, got 1");
  EXPECT_EQ(error("utility_band", {{"low", 0.7}}),
            "pool-size rule \"utility_band\": option \"low\" needs at most high (0.65), got 0.7");
}

INSTANTIATE_TEST_SUITE_P(All, PoolSize, ::testing::ValuesIn(PoolSizeRules().Names()),
                         [](const auto& rule) { return rule.param; });

using PoolSizeRuleTest = PoolSize;

TEST_F(PoolSizeRuleTest, GrowsForConfigurationsThatWait) {
  const Pool pool = PoolOf(1, 4, 0.1);
  PoolSizeRequest request = Request(pool, 1);
  request.demand = {{StudyId(1), {12, 1}}};
  const PoolSizeDecision decision = Decide("utility_price", request);
  EXPECT_GE(decision.nodes, 4) << decision.reason;
}

TEST_F(PoolSizeRuleTest, ShrinksWhenTrialsThatAreLeftScaleBadly) {
  const Pool pool = PoolOf(8, 1, 0.5);
  const PoolSizeDecision decision = Decide("utility_price", Request(pool, 8));
  EXPECT_LE(decision.nodes, 2) << decision.reason;
}

TEST_F(PoolSizeRuleTest, StartsNothingThatWouldComeTooLate) {
  Pool pool = PoolOf(1, 8, 0.02);
  for (Job& job : pool.jobs) job.work_left_s = 40;
  EXPECT_EQ(Decide("utility_price", Request(pool, 1)).nodes, 1);
  for (Job& job : pool.jobs) job.work_left_s = 4000;
  EXPECT_GT(Decide("utility_price", Request(pool, 1)).nodes, 1);
}

TEST_F(PoolSizeRuleTest, PendingNodesAreNotAskedForAgain) {
  const Pool pool = PoolOf(1, 16, 0.5);
  PoolSizeRequest request = Request(pool, 1);
  const int wanted = Decide("utility_price", request).nodes;
  request.pending = wanted - 1;
  EXPECT_EQ(Decide("utility_price", request).nodes, wanted);
}

TEST_F(PoolSizeRuleTest, TheBandIsThatOfPollux) {
  const Pool full = PoolOf(1, 20, 0.1);
  EXPECT_GT(Decide("utility_band", Request(full, 1)).nodes, 1) << "utility 1 is above 0.65";
  const Pool idle = PoolOf(10, 1, 0.5);
  EXPECT_LT(Decide("utility_band", Request(idle, 10)).nodes, 10) << "utility below 0.35";
}

TEST_F(PoolSizeRuleTest, TheSmallestPoolThatMeetsTheDeadline) {
  Pool pool = PoolOf(1, 16, 0.1);
  for (Job& job : pool.jobs) job.work_left_s = 1000;
  PoolSizeRequest request = Request(pool, 1);
  request.deadline_s = 5000;
  const int relaxed = Decide("least_cost", request).nodes;
  request.deadline_s = 1500;
  const PoolSizeDecision tight = Decide("least_cost", request, {{"margin", 0}});
  EXPECT_EQ(relaxed, 1) << "16000 s of work on 4 slots take 4000 s";
  EXPECT_EQ(tight.nodes, 3) << tight.reason;
  EXPECT_GT(Decide("least_cost", request).nodes, 3) << "a tenth of the time is kept in reserve";
  request.deadline_s = 10;
  EXPECT_THAT(Decide("least_cost", request).reason, HasSubstr("none surely ends within 10 s"));
}

TEST_F(PoolSizeRuleTest, WithoutKnowingTheWorkADeadlineBuysLittle) {
  const Pool pool = PoolOf(0, 0, 0.1);
  PoolSizeRequest request = Request(pool, 0);
  request.demand = {{StudyId(1), {16, 1}}};
  request.deadline_s = 1000;
  EXPECT_EQ(Decide("least_cost", request).nodes, 1);
  request.work_left_s = 16000;
  EXPECT_GT(Decide("least_cost", request).nodes, 3);
  request.work_left_s = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Decide("least_cost", request).nodes, 4) << "as many as cost no more for each trial";
}

TEST_P(PoolSize, WhatFillsNoNodeStillGetsOne) {
  const Pool pool = PoolOf(0, 0, 0.1);
  PoolSizeRequest request = Request(pool, 0);
  request.node.min_nodes = 0;
  request.node.slots = 8;
  request.demand = {{StudyId(1), {1, 1}}};
  EXPECT_EQ(Decide(GetParam(), request).nodes, 1);
  const Pool one = PoolOf(2, 0, 0.1);  // the same, once it is there
  PoolSizeRequest later{one, request.demand, request.node, 1};
  EXPECT_EQ(Decide(GetParam(), later).nodes, 1);
}

TEST_P(PoolSize, WhatIsWiderThanANodeGetsSeveral) {
  const Pool pool = PoolOf(0, 0, 0.1);
  PoolSizeRequest request = Request(pool, 0);
  request.node.min_nodes = 0;
  request.demand = {{StudyId(1), {1, 10}}};
  EXPECT_GE(Decide(GetParam(), request).nodes, 3);
  request.demand = {{StudyId(1), {1, 50}}};
  EXPECT_EQ(Decide(GetParam(), request).nodes, 0) << "no pool is large enough";
}

}  // namespace
}  // namespace espalier
