// Pruners that pause: who waits gives its slots back, and comes back when its pruner lets it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/core/core_fixture.h"

namespace espalier {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class PausingTest : public CoreTest {
 protected:
  // A study of so many trials on one slot.
  void Start(std::int64_t trials) {
    Step(CreateStudy{Pausing(trials), false});
    Join(1);
  }
  StudySpec Pausing(std::int64_t trials) {
    StudySpec spec = Spec(trials);
    spec.pruner = {"asha_promote", {{"eta", 2}}};
    spec.max_slots = 1;
    spec.max_step = 9;
    return spec;
  }

  // The same with a queue, before there is a slot.
  void StartQueue(int trials) {
    StudySpec spec = Pausing(0);
    spec.kind = StudyKind::kQueued;
    spec.sampler = {kQueueSampler, {}};
    Step(CreateStudy{spec, false});
    for (int i = 0; i < trials; ++i) Step(EnqueueTrial{"s", {{"x", 0.5}}, {}, ""});
  }

  // Starts the trial whose replica was just asked for, and lets it train.
  ReplicaId Train() {
    const ReplicaId replica = Ready(starts_.at(0).replica);
    Form(regroups_);
    return replica;
  }
  // Its process goes.
  void Leave(ReplicaId replica) { Step(ReplicaExited{replica, 0, 0, "", ""}); }
  // The next trial reports values, from step 1 on, and ends well.
  void TrainToTheEnd(const std::vector<double>& values) {
    const ReplicaId replica = Train();
    std::int64_t step = 0;
    for (const double value : values) Report(replica, ++step, value);
    Step(FromReplica{replica, ReplicaFinished{values.back()}});
    Leave(replica);
  }
  // The next trial reports one value, is paused for it, and leaves.
  void TrainAndPause(double value) {
    const ReplicaId replica = Train();
    Report(replica, 1, value);
    Leave(replica);
  }
};

TEST_F(PausingTest, TrialAtItsLastStepEndsWell) {
  StudySpec spec = Pausing(3);
  spec.pruner = {"asha", {{"eta", 2}}};
  spec.max_step = 2;
  Step(CreateStudy{spec, false});
  Join(1);
  TrainToTheEnd({0.5, 0.3});
  TrainToTheEnd({0.4, 0.9});  // by its second value it is the worse half
  EXPECT_EQ(trial(2).state, TrialState::kComplete);
  EXPECT_EQ(trial(2).value, 0.9);
  const ReplicaId third = Train();
  Report(third, 1, 0.9);
  EXPECT_EQ(trial(3).state, TrialState::kPruned) << "it had a step to go";
}

TEST_F(PausingTest, PausedTrialGivesItsSlotToTheNext) {
  Start(4);
  TrainToTheEnd({0.5, 0.4});  // the only one at its rungs
  const ReplicaId second = Train();
  Report(second, 1, 0.9);
  ASSERT_EQ(regroups_.size(), 1u);
  EXPECT_TRUE(regroups_[0].membership.members.empty())
      << "to nobody: a checkpoint is taken before it leaves";
  Leave(second);
  EXPECT_EQ(trial(2).state, TrialState::kPaused);
  EXPECT_THAT(trial(2).reason, StartsWith("asha_promote: 0.9 at step 1 waits"));
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].trial, TrialId(3)) << "not the one that waits";
}

TEST_F(PausingTest, PromotionComesBeforeNewConfigurations) {
  Start(9);
  TrainToTheEnd({0.1});
  TrainAndPause(0.5);
  TrainAndPause(0.6);
  TrainAndPause(0.7);  // a fourth one, worse than 0.5: with it two of four may go on
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].trial, TrialId(2));
  EXPECT_EQ(trial(2).state, TrialState::kRunning);
  EXPECT_EQ(study().decisions.back().kind, DecisionKind::kResume);
}

TEST_F(PausingTest, WhoWaitsAtTheEndIsPrunedWithItsReason) {
  Start(2);
  TrainToTheEnd({0.1});
  const ReplicaId second = Train();
  Report(second, 1, 0.5);
  EXPECT_EQ(study().state, StudyState::kRunning);
  Leave(second);
  EXPECT_EQ(trial(2).state, TrialState::kPruned);
  EXPECT_THAT(trial(2).reason, EndsWith("; was never promoted"));
  EXPECT_EQ(trial(2).value, 0.5);
  EXPECT_EQ(study().state, StudyState::kComplete);
}

TEST_F(PausingTest, EnqueuedTrialsWaitForTheirPromotionToo) {
  StartQueue(4);
  Join(1);
  TrainToTheEnd({0.1});
  TrainAndPause(0.5);
  EXPECT_EQ(trial(2).state, TrialState::kPaused);
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].trial, TrialId(3)) << "not the one that waits";
  TrainAndPause(0.6);
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].trial, TrialId(4));
  TrainAndPause(0.7);
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].trial, TrialId(2)) << "two of four may go on";
}

TEST_F(PausingTest, WhoWaitsInAQueueIsPrunedWhenItIsEmpty) {
  StartQueue(2);
  Join(1);
  TrainToTheEnd({0.1});
  TrainAndPause(0.5);
  EXPECT_EQ(trial(2).state, TrialState::kPruned);
  EXPECT_THAT(trial(2).reason, EndsWith("; was never promoted"));
  EXPECT_EQ(study().state, StudyState::kRunning) << "more may be enqueued";
}

TEST_F(PausingTest, AQueueIsNotEmptyWhileItsClientHoldsATrialBack) {
  StartQueue(3);
  Step(HoldTrial{TrialId(3)});
  Join(1);
  TrainToTheEnd({0.1});
  TrainAndPause(0.5);
  EXPECT_EQ(trial(2).state, TrialState::kPaused);
  EXPECT_TRUE(starts_.empty());
  Step(HoldTrial{TrialId(3), false});
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].trial, TrialId(3));
  TrainAndPause(0.6);
  EXPECT_EQ(trial(2).state, TrialState::kPruned);
  EXPECT_EQ(trial(3).state, TrialState::kPruned);
}

TEST_F(PausingTest, WaitsOnAfterARestartOfTheService) {
  Start(9);
  TrainToTheEnd({0.1});
  TrainAndPause(0.5);
  ASSERT_EQ(trial(2).state, TrialState::kPaused);
  Core again(core_.state(), CoreOptions{});
  const StepResult result = again.Step(After(now_, 60), AgentHello{"node", 1, {}});
  for (const Command& command : result.commands) {
    if (const auto* start = std::get_if<StartReplicaCommand>(&command)) {
      EXPECT_NE(start->trial, TrialId(2));
    }
  }
  EXPECT_EQ(again.state().trials.at(TrialId(2)).state, TrialState::kPaused);
}

// The fourth trial after one that is complete and two that wait; `startup_trials` are drawn at
// random.
class LearningWhilePaused : public PausingTest {
 protected:
  Parameters FourthAfter(double startup_trials) {
    StudySpec spec = Pausing(9);
    spec.sampler = {"tpe", {{"startup_trials", startup_trials}}};
    Step(CreateStudy{spec, false});
    Join(1);
    TrainToTheEnd({0.1});
    TrainAndPause(0.5);
    TrainAndPause(0.6);
    EXPECT_EQ(trial(2).state, TrialState::kPaused);
    EXPECT_EQ(trial(3).state, TrialState::kPaused);
    return trial(4).parameters;
  }
  Parameters FourthAtRandom() {
    Random random(MixSeed(study().spec.seed, 4));
    return study().spec.space.Sample(random);
  }
};

TEST_F(LearningWhilePaused, SamplersLearnFromTrialsThatWait) {
  const Parameters fourth = FourthAfter(3);
  EXPECT_NE(fourth, FourthAtRandom());
}

TEST_F(LearningWhilePaused, EachCountsOnce) {
  const Parameters fourth = FourthAfter(4);
  EXPECT_EQ(fourth, FourthAtRandom());
}

TEST_F(PausingTest, WhatAProgramTellsBeforeItStopsIsKept) {
  Start(1);
  EXPECT_FALSE(Step(TellValue{TrialId(1), 1, 0.5, false}).should_stop());
  Step(StopStudy{"s"});
  ASSERT_EQ(trial(1).state, TrialState::kRunning) << "until its process has gone";
  EXPECT_TRUE(Step(TellValue{TrialId(1), 2, 0.4, false}).should_stop());
  ASSERT_EQ(trial(1).values.size(), 2U);
  EXPECT_EQ(trial(1).values.back().value, 0.4);
  EXPECT_TRUE(Step(TellValue{TrialId(1), 3, 0.3, true}).should_stop());
  EXPECT_EQ(trial(1).state, TrialState::kComplete);
  EXPECT_EQ(trial(1).value, 0.3);
}

TEST_F(PausingTest, ProgramsWithoutCheckpointsAreStopped) {
  Start(3);
  const ReplicaId first = starts_.at(0).replica;
  Step(TellValue{TrialId(1), 1, 0.1, true});
  Leave(first);
  Step(TellValue{TrialId(2), 1, 0.5, false});
  EXPECT_EQ(trial(2).state, TrialState::kPruned);
  EXPECT_THAT(trial(2).reason, HasSubstr("its program cannot be paused"));
}

}  // namespace
}  // namespace espalier
