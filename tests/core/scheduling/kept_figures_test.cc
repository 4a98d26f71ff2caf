// What is kept of what policies knew, with decisions and with values.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/core_fixture.h"

namespace espalier {
namespace {

class KeptFigures : public CoreTest {
 protected:
  // The only decision of that kind about the trial.
  Decision DecisionAbout(std::int64_t id, DecisionKind kind) {
    std::vector<Decision> found;
    const Study& of = core_.state().studies.at(trial(id).study);
    for (const Decision& decision : of.decisions) {
      if (decision.trial_number == trial(id).number && decision.kind == kind) {
        found.push_back(decision);
      }
    }
    EXPECT_EQ(found.size(), 1u) << ToString(kind);
    return found.empty() ? Decision{} : found.front();
  }
};

TEST_F(KeptFigures, AStartAndAGrowthOnFreeSlotsComeFromNobody) {
  TwoReplicas();
  const Decision start = DecisionAbout(1, DecisionKind::kStart);
  ASSERT_TRUE(start.figures);
  EXPECT_GT(start.figures->promise, 0);
  EXPECT_EQ(start.figures->speedup_before, 0);
  EXPECT_EQ(start.figures->speedup_after, 1);
  EXPECT_EQ(start.figures->resize_cost_s, 0);
  const Decision growth = DecisionAbout(1, DecisionKind::kGrow);
  ASSERT_TRUE(growth.figures);
  EXPECT_EQ(growth.figures->speedup_before, 1);
  EXPECT_EQ(growth.figures->speedup_after, 2);
  EXPECT_FLOAT_EQ(growth.figures->gain, growth.figures->promise);
  EXPECT_GT(growth.figures->resize_cost_s, 0);
  EXPECT_TRUE(growth.figures->from.empty());
}

TEST_F(KeptFigures, SlotsOfAnotherTrialAreToldWithIt) {
  TwoReplicas();
  StudySpec other = Spec(1);
  other.name = "t";
  Step(CreateStudy{other, false});
  Wait(3);
  const Decision given = DecisionAbout(1, DecisionKind::kShrink);
  ASSERT_TRUE(given.figures);
  EXPECT_EQ(given.figures->speedup_after, 1);
  EXPECT_LT(given.figures->gain, 0);
  EXPECT_TRUE(given.figures->from.empty());
  const Decision start = DecisionAbout(2, DecisionKind::kStart);
  ASSERT_TRUE(start.figures);
  ASSERT_EQ(start.figures->from.size(), 1u);
  EXPECT_EQ(start.figures->from[0].trial, TrialId(1));
  EXPECT_EQ(start.figures->from[0].slots, 1);
  EXPECT_EQ(start.figures->from[0].promise, given.figures->promise);
}

TEST_F(KeptFigures, APolicyWithoutAModelHasNone) {
  StudySpec spec = Spec(1);
  spec.policy = {"fixed", {}};
  spec.names_policy = true;
  Step(CreateStudy{spec, false});
  Join(2);
  EXPECT_FALSE(DecisionAbout(1, DecisionKind::kStart).figures);
}

TEST_F(KeptFigures, WhatNobodyPlannedHasNone) {
  const std::vector<ReplicaId> replicas = TwoReplicas();
  Step(FromReplica{replicas[0], ReplicaReport{.step = 1, .value = 0.5}});
  for (const ReplicaId replica : replicas) Step(ReplicaExited{replica, 0, 0, "", ""});
  EXPECT_FALSE(DecisionAbout(1, DecisionKind::kFinish).figures);
}

TEST_F(KeptFigures, AValueHasThePromiseAndTheGoodputOfItsTrial) {
  const ReplicaId first = TwoReplicas().front();
  Step(FromReplica{first, ReplicaReport{.step = 1, .value = 0.5}});
  ReplicaProgress progress;
  progress.generation = trial().generation;
  progress.step = 10;
  progress.global_batch_size = 64;
  progress.figures[Figure::kGoodput] = 128.5;
  Step(FromReplica{first, progress});
  const double promise = core_.Activity(TrialId(1)).promise;
  Step(FromReplica{first, ReplicaReport{.step = 2, .value = 0.25}});
  ASSERT_EQ(trial().values.size(), 2u);
  EXPECT_EQ(trial().values[0].goodput, 0) << "its program had told none";
  EXPECT_EQ(trial().values[1].goodput, 128.5);
  EXPECT_GT(trial().values[1].promise, 0);
  EXPECT_EQ(trial().values[1].promise, static_cast<float>(promise));
}

// Programs of users tell it.
TEST_F(KeptFigures, AGoodputThatIsNoNumberIsUnknown) {
  const ReplicaId first = TwoReplicas().front();
  ReplicaProgress progress;
  progress.generation = trial().generation;
  progress.step = 10;
  progress.global_batch_size = 64;
  progress.figures[Figure::kGoodput] = 1e300;
  Step(FromReplica{first, progress});
  Step(FromReplica{first, ReplicaReport{.step = 1, .value = 0.5}});
  EXPECT_EQ(trial().values.at(0).goodput, 0);
}

}  // namespace
}  // namespace espalier
