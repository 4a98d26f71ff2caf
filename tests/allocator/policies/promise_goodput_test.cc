#include <limits>

#include "allocator/policies/policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/allocator/pools.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

const NodeId kOne(1);
const NodeId kTwo(2);

std::vector<AllocationDecision> Allocate(const Pool& pool, const Options& options = {}) {
  return Make("promise_goodput", options)->Allocate(pool);
}

std::string ReasonFor(const std::vector<AllocationDecision>& decisions, std::int64_t trial) {
  for (const auto& d : decisions) {
    if (d.trial == TrialId(trial)) return d.reason;
  }
  return "no decision";
}

TEST(PromiseGoodput, StartsWaitingTrialsOnOneSlotEach) {
  Pool pool{{Node(1, 4)}, {}};
  for (int i = 1; i <= 6; ++i) pool.jobs.push_back(WaitingJob(i));
  const auto decisions = Allocate(pool);
  ASSERT_EQ(decisions.size(), 4u);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(decisions[static_cast<std::size_t>(i)].trial, TrialId(i + 1));
  }
}

TEST(PromiseGoodput, GivesTheFreeSlotToTheMorePromisingAndSaysWhy) {
  Pool pool{{Node(1, 3)}, {RunningJob(1, {{kOne, 1}}, 0.2), RunningJob(2, {{kOne, 1}}, 0.8)}};
  for (Job& job : pool.jobs) job.goodput = Scaling(0.05);
  const auto decisions = Allocate(pool);
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(decisions[0].reason,
            "grows 1 -> 2: promise 0.80, speedup 1.00 -> 1.82 (+0.65 weighted), 1 slot was free");
}

TEST(PromiseGoodput, PrefersTheTrialThatCanUseASlot) {
  Pool pool{{Node(1, 3)}, {RunningJob(1, {{kOne, 1}}, 0.5), RunningJob(2, {{kOne, 1}}, 0.6)}};
  pool.jobs[0].goodput = Scaling(0.02);
  pool.jobs[1].goodput = Scaling(0.4);
  EXPECT_THAT(ReasonFor(Allocate(pool), 1), HasSubstr("grows 1 -> 2"));
}

TEST(PromiseGoodput, LeavesASlotIdleThatBringsNothing) {
  Pool pool{{Node(1, 2)}, {RunningJob(1, {{kOne, 1}}, 1.0)}};
  pool.jobs[0].goodput = Scaling(0.48);
  EXPECT_TRUE(Allocate(pool).empty());
  EXPECT_EQ(Allocate(pool, {{"min_gain", 0.01}}).size(), 1u);
}

TEST(PromiseGoodput, LetsGoOfASlotThatSlowsDown) {
  Pool pool{{Node(1, 2)}, {RunningJob(1, {{kOne, 2}}, 1.0)}};
  pool.jobs[0].goodput = Scaling(0.7);
  EXPECT_EQ(ReasonFor(Allocate(pool), 1),
            "shrinks 2 -> 1: promise 1.00, speedup on 2 is 0.83, on 1 it is 1.00");
}

TEST(PromiseGoodput, ExploresToTwiceWhatWasMeasured) {
  Pool pool{{Node(1, 8)}, {RunningJob(1, {{kOne, 1}}, 1.0)}};
  EXPECT_THAT(ReasonFor(Allocate(pool), 1), HasSubstr("grows 1 -> 2"));
  pool.jobs[0].max_profiled_replicas = 3;
  EXPECT_THAT(ReasonFor(Allocate(pool), 1), HasSubstr("grows 1 -> 6"));
}

TEST(PromiseGoodput, TakesASlotBackForAWaitingTrialFromWhoMissesItLeast) {
  Pool pool{{Node(1, 4)},
            {RunningJob(1, {{kOne, 2}}, 0.9), RunningJob(2, {{kOne, 2}}, 0.1), WaitingJob(17)}};
  pool.jobs[1].since_resize_s = 0;  // room for a waiting trial is made at any time
  const auto decisions = Allocate(pool);
  ASSERT_EQ(decisions.size(), 2u);
  EXPECT_EQ(decisions[0].reason, "shrinks 2 -> 1: promise 0.10, makes room for waiting trial 17");
  EXPECT_EQ(decisions[1].reason, "starts on 1 slot: promise 0.50, 1 slot comes from trial 2");
}

TEST(PromiseGoodput, NeverTakesTheMinimum) {
  Pool pool{{Node(1, 4)}, {RunningJob(1, {{kOne, 4}}, 0.0), WaitingJob(2)}};
  pool.jobs[0].min_slots = 4;
  EXPECT_TRUE(Allocate(pool).empty());
}

TEST(PromiseGoodput, MovesASlotFromLowToHighPromise) {
  Pool pool{{Node(1, 3)}, {RunningJob(1, {{kOne, 2}}, 0.1), RunningJob(2, {{kOne, 1}}, 0.8)}};
  const auto decisions = Allocate(pool);
  ASSERT_EQ(decisions.size(), 2u);
  EXPECT_EQ(decisions[0].reason,
            "shrinks 2 -> 1: promise 0.10, trial 2 of promise 0.80 gains 0.80 weighted, here 0.10 "
            "are lost");
  EXPECT_EQ(decisions[1].reason,
            "grows 1 -> 2: promise 0.80, speedup 1.00 -> 2.00 (+0.80 weighted), 1 slot comes from "
            "trial 1");
  EXPECT_EQ(decisions[0].figures, (AllocationFigures{.promise = 0.1F,
                                                     .speedup_before = 2,
                                                     .speedup_after = 1,
                                                     .gain = -0.1F,
                                                     .resize_cost_s = 0.1F}));
  EXPECT_EQ(decisions[1].figures, (AllocationFigures{.promise = 0.8F,
                                                     .speedup_before = 1,
                                                     .speedup_after = 2,
                                                     .gain = 0.8F,
                                                     .resize_cost_s = 0.1F,
                                                     .from = {{TrialId(1), 1, 0.1F}}}));
}

TEST(PromiseGoodput, ComparesWithWhatATrialHadBeforeItsNodeWasLost) {
  Pool pool{{Node(1, 1)}, {RunningJob(1, {{kOne, 1}, {kTwo, 2}}, 0.5)}};
  const auto decisions = Allocate(pool);
  ASSERT_EQ(decisions.size(), 1u);
  ASSERT_TRUE(decisions[0].figures);
  EXPECT_EQ(decisions[0].figures->speedup_before, 3);
  EXPECT_EQ(decisions[0].figures->speedup_after, 1);
  pool.nodes.clear();
  const auto pause = Allocate(pool);
  ASSERT_EQ(pause.size(), 1u);
  ASSERT_TRUE(pause[0].figures);
  EXPECT_EQ(pause[0].figures->speedup_before, 3);
  EXPECT_EQ(pause[0].figures->speedup_after, 0);
}

TEST(PromiseGoodput, KeepsNoFigureThatIsNoNumber) {
  Pool pool{{Node(1, 3)}, {RunningJob(1, {{kOne, 2}}, 0.5), WaitingJob(2)}};
  pool.jobs[1].promise = std::numeric_limits<double>::quiet_NaN();
  const auto decisions = Allocate(pool);
  ASSERT_FALSE(decisions.empty());
  ASSERT_TRUE(decisions.back().figures);
  EXPECT_EQ(decisions.back().trial, TrialId(2));
  EXPECT_EQ(decisions.back().figures->promise, 0);
}

TEST(PromiseGoodput, MovesNothingWithinTheHysteresis) {
  const Pool pool{{Node(1, 3)},
                  {RunningJob(1, {{kOne, 2}}, 0.5), RunningJob(2, {{kOne, 1}}, 0.55)}};
  EXPECT_TRUE(Allocate(pool).empty());
  EXPECT_EQ(Allocate(pool, {{"hysteresis", 0}}).size(), 2u);
}

TEST(PromiseGoodput, MovesNothingThatDoesNotPayForThePause) {
  Pool pool{{Node(1, 3)}, {RunningJob(1, {{kOne, 2}}, 0.1), RunningJob(2, {{kOne, 1}}, 0.8)}};
  pool.jobs[1].work_left_s = 0.05;
  EXPECT_TRUE(Allocate(pool).empty());
  pool.jobs[1].work_left_s = 120;
  pool.jobs[1].resize_cost_s = 100;
  EXPECT_TRUE(Allocate(pool).empty());
}

TEST(PromiseGoodput, TriesFurtherBeyondWhatWasMeasuredWhereAPauseIsLong) {
  Pool pool{{Node(1, 16)}, {RunningJob(1, {{kOne, 1}}, 0.5, 16)}};
  EXPECT_EQ(Total(After(pool, Allocate(pool)).at(TrialId(1))), 2);
  pool.jobs[0].resize_cost_s = 4;
  EXPECT_EQ(Total(After(pool, Allocate(pool)).at(TrialId(1))), 4);
  pool.jobs[0].resize_cost_s = 30;
  EXPECT_EQ(Total(After(pool, Allocate(pool)).at(TrialId(1))), 8);
}

TEST(PromiseGoodput, UrgencyFavoursWhoHasLittleLeftAndTheLastTwoRunSideBySide) {
  Pool pool{{Node(1, 16)}, {RunningJob(1, {{kOne, 1}}, 1, 16), RunningJob(2, {{kOne, 1}}, 1, 16)}};
  pool.jobs[0].work_left_s = 2e4;
  pool.jobs[1].work_left_s = 1e4;
  for (Job& job : pool.jobs) {
    job.goodput = Scaling(0.02);
    job.max_profiled_replicas = 16;
  }
  const auto without = After(pool, Allocate(pool));
  EXPECT_EQ(Total(without.at(TrialId(1))), 8);
  const auto held = After(pool, Allocate(pool, {{"urgency", 1}}));
  EXPECT_GT(Total(held.at(TrialId(2))), 8);
  EXPECT_GT(Total(held.at(TrialId(1))), 2);
}

TEST(PromiseGoodput, LeavesATrialAloneThatWasJustResized) {
  Pool pool{{Node(1, 2)}, {RunningJob(1, {{kOne, 1}}, 0.8)}};
  pool.jobs[0].since_resize_s = 1;
  EXPECT_TRUE(Allocate(pool).empty());
  pool.jobs[0].since_resize_s = 3;
  EXPECT_EQ(Allocate(pool).size(), 1u);
  pool.jobs[0].joining = true;
  EXPECT_TRUE(Allocate(pool).empty());
}

TEST(PromiseGoodput, CrossesADipInTheCurve) {
  // Three replicas of a batch of four are no faster than two: one of them has two samples anyway.
  Pool pool{{Node(1, 4)}, {RunningJob(1, {{kOne, 2}}, 1.0)}};
  pool.jobs[0].goodput = GoodputModel({1e-8, 0.1, 1e-8, 1e-8, 1e-8, 1e-8, 1}, {},
                                      {.initial = 4, .max_global = 4, .max_atomic = 4});
  EXPECT_THAT(ReasonFor(Allocate(pool), 1), HasSubstr("grows 2 -> 4"));
}

TEST(PromiseGoodput, FillsOneNodeBeforeTheNext) {
  const Pool pool{{Node(1, 4), Node(2, 4)}, {RunningJob(1, {{kTwo, 2}}, 1.0)}};
  const auto held = After(pool, Allocate(pool));
  EXPECT_EQ(held.at(TrialId(1)), (Placement{{kTwo, 4}}));
}

TEST(PromiseGoodput, SpansNodesOnlyWithATrialEach) {
  Pool pool{{Node(1, 3), Node(2, 3)},
            {RunningJob(1, {{kOne, 3}}, 0.9, 4), RunningJob(2, {{kTwo, 2}}, 0.5, 4)}};
  for (Job& job : pool.jobs) job.max_profiled_replicas = 4;
  const auto held = After(pool, Allocate(pool));
  EXPECT_EQ(held.at(TrialId(1)), (Placement{{kOne, 3}, {kTwo, 1}}));
  EXPECT_EQ(held.at(TrialId(2)), (Placement{{kTwo, 2}}));
}

TEST(PromiseGoodput, RepairsALostNode) {
  Pool pool{{Node(2, 2)},
            {RunningJob(1, {{kOne, 2}, {kTwo, 1}}, 0.9), RunningJob(2, {{kOne, 1}}, 0.5),
             RunningJob(3, {{kTwo, 1}}, 0.5)}};
  const auto decisions = Allocate(pool);
  const auto held = After(pool, decisions);
  EXPECT_EQ(held.at(TrialId(1)), (Placement{{kTwo, 1}}));
  EXPECT_TRUE(held.at(TrialId(2)).empty());
  EXPECT_EQ(ReasonFor(decisions, 1), "shrinks 3 -> 1: promise 0.90, node 1 is gone");
  EXPECT_EQ(ReasonFor(decisions, 2), "pauses: node 1 is gone, no room for its minimum");
}

TEST(PromiseGoodput, RepairsANodeThatBecameSmaller) {
  const Pool pool{{Node(1, 2)}, {RunningJob(1, {{kOne, 2}}, 0.9), RunningJob(2, {{kOne, 1}}, 0.2)}};
  const auto decisions = Allocate(pool);
  EXPECT_EQ(decisions.size(), 1u);
  EXPECT_THAT(ReasonFor(decisions, 1), HasSubstr("node 1 has fewer slots"));
}

TEST(PromiseGoodput, PassesOverATrialLargerThanThePool) {
  Pool pool{{Node(1, 2)}, {WaitingJob(1), WaitingJob(2)}};
  pool.jobs[0].min_slots = 3;
  const auto decisions = Allocate(pool);
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(decisions[0].trial, TrialId(2));
}

TEST(PromiseGoodput, KeepsOthersBehindALargeTrialThatWillFit) {
  Pool pool{{Node(1, 4)}, {RunningJob(1, {{kOne, 1}}, 0.5, 1), WaitingJob(2, 4), WaitingJob(3, 1)}};
  pool.jobs[1].min_slots = 4;
  EXPECT_TRUE(Allocate(pool).empty());
}

TEST(PromiseGoodput, HonoursAPin) {
  Pool pool{{Node(1, 8)}, {RunningJob(1, {{kOne, 1}}, 0.1), RunningJob(2, {{kOne, 4}}, 0.9)}};
  pool.jobs[0].pinned_slots = 3;
  pool.jobs[1].pinned_slots = 2;
  const auto held = After(pool, Allocate(pool));
  EXPECT_EQ(Total(held.at(TrialId(1))), 3);
  EXPECT_EQ(Total(held.at(TrialId(2))), 2);
}

TEST(PromiseGoodput, NamesOptionsItDoesNotHave) {
  EXPECT_EQ(std::string(MakePolicy("promise_goodput", {{"gain", 1}}).status().message()),
            "policy \"promise_goodput\" has no option \"gain\"; it has min_gain, hysteresis, "
            "min_resize_interval_s, horizon_s, urgency, fairness");
  EXPECT_FALSE(MakePolicy("promise_goodput", {{"min_gain", -1}}).ok());
}

}  // namespace
}  // namespace espalier
