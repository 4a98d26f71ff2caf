#include "allocator/pool/study_shares.h"

#include <gtest/gtest.h>

#include "tests/allocator/pools.h"

namespace espalier {
namespace {

Job OfStudy(std::int64_t study, Job job) {
  job.study = StudyId(study);
  return job;
}

class StudyShares : public ::testing::Test {
 protected:
  std::map<StudyId, StudyPart> Divide(const Pool& pool,
                                      const std::map<StudyId, StudyDemand>& demand = {},
                                      double fairness = kStudyFairness) {
    SpeedupCache cache;
    return DivideAmongStudies(pool, cache, demand, fairness);
  }

  const StudyId a_{1};
  const StudyId b_{2};
};

TEST_F(StudyShares, ConfigurationsThatWaitAreSharedEvenly) {
  const auto parts = Divide({{Node(1, 8)}, {}}, {{a_, {100, 1}}, {b_, {100, 1}}});
  EXPECT_EQ(parts.at(a_).slots, 4);
  EXPECT_EQ(parts.at(b_).slots, 4);
}

TEST_F(StudyShares, WhatOneCannotUseTheOtherGets) {
  const auto parts = Divide({{Node(1, 8)}, {}}, {{a_, {2, 1}}, {b_, {100, 1}}});
  EXPECT_EQ(parts.at(a_).slots, 2);
  EXPECT_EQ(parts.at(b_).slots, 6);
}

TEST_F(StudyShares, SharesAreOfGoodput) {
  Pool pool{{Node(1, 9)}, {}};
  pool.shares = {{a_, 1}, {b_, 2}};
  const auto parts = Divide(pool, {{a_, {100, 1}}, {b_, {100, 1}}});
  EXPECT_EQ(parts.at(a_).slots, 3);
  EXPECT_EQ(parts.at(b_).slots, 6);
}

TEST_F(StudyShares, FewTrialsGetMoreSlotsForTheSameGoodput) {
  Pool pool{{Node(1, 32)}, {}};
  Job few = OfStudy(2, RunningJob(1, {{NodeId(1), 8}}, 0.5, 32));
  few.goodput = Scaling(0.05);
  few.max_profiled_replicas = 16;
  pool.jobs = {few};
  const auto parts = Divide(pool, {{a_, {100, 1}}});
  EXPECT_GT(parts.at(b_).slots, parts.at(a_).slots);
  EXPECT_NEAR(parts.at(b_).goodput / parts.at(a_).goodput, 1, 0.15);
  const auto by_sum = Divide(pool, {{a_, {100, 1}}}, 1);
  EXPECT_LT(by_sum.at(b_).slots, parts.at(b_).slots) << "the sum prefers those that scale";
}

TEST_F(StudyShares, DrainingNodesAreNobodysShare) {
  NodeCapacity drains = Node(1, 8);
  drains.draining = true;
  const auto parts = Divide({{drains, Node(2, 2)}, {}}, {{a_, {9, 1}}, {b_, {9, 1}}});
  EXPECT_EQ(parts.at(a_).slots + parts.at(b_).slots, 2);
}

TEST_F(StudyShares, WhoIsOwedATrialGetsItWhole) {
  Pool pool{{Node(1, 4)}, {}};
  for (int i = 0; i < 3; ++i) {
    pool.jobs.push_back(OfStudy(1, RunningJob(i + 1, {{NodeId(1), 1}}, 0.5, 1)));
  }
  const std::map<StudyId, StudyDemand> demand = {{a_, {100, 1}}, {b_, {9, 4}}};
  EXPECT_EQ(Divide(pool, demand).at(b_).slots, 0) << "at no moment is there room for it";
  pool.owed = {{a_, -0.5}, {b_, 0.5}};
  EXPECT_EQ(Divide(pool, demand).at(b_).slots, 4);
  EXPECT_EQ(Divide(pool, demand).at(a_).slots, 0) << "its trials are not replaced";
  pool.owed = {{a_, 0.5}, {b_, -0.5}};
  EXPECT_EQ(Divide(pool, demand).at(a_).slots, 4);
}

TEST_F(StudyShares, AsManyTrialsAsItIsOwed) {
  Pool pool{{Node(1, 10)}, {}};
  const std::map<StudyId, StudyDemand> demand = {{a_, {100, 1}}, {b_, {9, 3}}};
  pool.owed = {{a_, -2}, {b_, 2}};
  EXPECT_EQ(Divide(pool, demand).at(b_).slots, 6);
  pool.owed = {{a_, 2}, {b_, -2}};
  EXPECT_EQ(Divide(pool, demand).at(b_).slots, 3);
}

TEST_F(StudyShares, WaitingTrialsBeyondAPartAreKeptFromPolicies) {
  Pool pool{{Node(1, 4)}, {}};
  pool.jobs = {OfStudy(1, RunningJob(1, {{NodeId(1), 1}}, 0.5, 1)), OfStudy(1, WaitingJob(2, 1)),
               OfStudy(1, WaitingJob(3, 1)), OfStudy(2, WaitingJob(4, 1))};
  pool.jobs[1].order = 9;
  pool.jobs[2].order = 8;
  WithholdBeyondParts(pool, {{a_, {.slots = 2}}, {b_, {.slots = 1}}});
  std::vector<TrialId> left;
  for (const Job& job : pool.jobs) left.push_back(job.id);
  EXPECT_EQ(left, (std::vector<TrialId>{TrialId(1), TrialId(3), TrialId(4)}));
  WithholdBeyondParts(pool, {{a_, {.slots = 0}}, {b_, {.slots = 1}}});
  EXPECT_EQ(pool.jobs.size(), 2U) << "one that runs is not touched";
}

TEST_F(StudyShares, TheWeightMakesAPolicyDivideSo) {
  Pool pool{{Node(1, 16)}, {}};
  for (int i = 0; i < 6; ++i) {
    Job job = OfStudy(1, RunningJob(i + 1, {{NodeId(1), 1}}, 0.5, 16));
    job.goodput = Scaling(0.02);
    job.max_profiled_replicas = 8;
    pool.jobs.push_back(job);
  }
  Job alone = OfStudy(2, RunningJob(7, {{NodeId(1), 1}}, 0.5, 16));
  alone.goodput = Scaling(0.02);
  alone.max_profiled_replicas = 8;
  pool.jobs.push_back(alone);
  const auto parts = Divide(pool);
  auto policy = Make("promise_goodput");
  const auto held = After(pool, policy->Allocate(pool));
  EXPECT_NEAR(Total(held.at(TrialId(7))), parts.at(b_).slots, 1);
  EXPECT_GE(Total(held.at(TrialId(7))), 6) << "alone it gets about what the six get together";
}

}  // namespace
}  // namespace espalier
