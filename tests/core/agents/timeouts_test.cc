// How long replicas may take: as the pool says, or their study.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/core_fixture.h"

namespace espalier {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class TimeoutsTest : public CoreTest {
 protected:
  // Says that a step takes so long.
  void TellStepTime(ReplicaId replica, double step_time_s) {
    ReplicaProgress progress;
    progress.generation = trial().generation;
    progress.step = 1;
    progress.global_batch_size = 64;
    progress.profile.push_back({{1, 2, 32}, 0, 0, 1, step_time_s, 0});
    Step(FromReplica{replica, progress});
  }
};

TEST(TrialTimeouts, OfTheStudyComeFirst) {
  const TrialTimeouts pools{1, 2, 3, 4, 5};
  EXPECT_EQ(Merge(kNoTimeouts, pools), pools);
  EXPECT_EQ(Merge({0, 20, 0, 0, 50}, pools), (TrialTimeouts{1, 20, 3, 4, 50}));
}

TEST_F(TimeoutsTest, AJoinerThatLoadsForLongIsAwaited) {
  Step(CreateStudy{Spec(1), false});
  Join(2);
  Ready(starts_.at(0).replica);
  Form(regroups_);
  Wait(3);
  ASSERT_THAT(starts_, SizeIs(1));
  const ReplicaId joiner = starts_[0].replica;
  Wait(590);
  EXPECT_THAT(stops_, IsEmpty());
  Wait(11);
  ASSERT_THAT(stops_, SizeIs(1));
  EXPECT_EQ(stops_[0].replica, joiner);
}

TEST_F(TimeoutsTest, AStudySaysHowLongItsJoinersMayLoad) {
  StudySpec spec = Spec(1);
  spec.timeouts.start_s = 1000;
  Step(CreateStudy{spec, false});
  Join(2);
  Ready(starts_.at(0).replica);
  Form(regroups_);
  Wait(3);
  ASSERT_THAT(starts_, SizeIs(1));
  Wait(990);
  EXPECT_THAT(stops_, IsEmpty());
  Wait(11);
  EXPECT_THAT(stops_, SizeIs(1));
}

TEST_F(TimeoutsTest, APauseHasTimeForALargeCheckpoint) {
  const auto replicas = TwoReplicas();
  Step(StopStudy{"s"});
  ASSERT_THAT(regroups_, SizeIs(2));
  EXPECT_THAT(regroups_[0].membership.members, IsEmpty());
  Wait(290);
  EXPECT_THAT(stops_, IsEmpty());
  Wait(11);
  EXPECT_THAT(stops_, SizeIs(2));
}

TEST_F(TimeoutsTest, AProgramMayWriteItsModelDownAfterItsEnd) {
  StudySpec spec = Spec(1);
  spec.timeouts.exit_s = 200;
  const auto replicas = TwoReplicas(spec);
  Step(FromReplica{replicas[0], ReplicaFinished{0.5}});
  EXPECT_EQ(trial().state, TrialState::kComplete);
  Wait(195);
  EXPECT_THAT(stops_, IsEmpty());
  Wait(6);
  EXPECT_THAT(stops_, SizeIs(2));
}

TEST_F(TimeoutsTest, AStepThatTakesLongIsNoStall) {
  const auto replicas = TwoReplicas();
  TellStepTime(replicas[0], 20);
  // The group is to form anew, and comes to it at the end of its step.
  Step(ReplicaExited{replicas[1], -1, 9, "", ""});
  const std::int64_t generation = trial().generation;
  Wait(100);
  EXPECT_EQ(trial().generation, generation);
  Wait(11);
  EXPECT_EQ(trial().generation, generation + 1) << "30 s and four steps are over";
}

TEST_F(TimeoutsTest, AStudyThatSavesForLongLeavesANodeThatEndsEarlier) {
  StudySpec spec = Spec(1);
  spec.timeouts.drain_s = 250;
  Step(CreateStudy{spec, false});
  Join(1);
  Form((Ready(starts_.at(0).replica), regroups_));
  Step(AgentLeaving{node_, 1000});
  Wait(748);
  EXPECT_THAT(regroups_, IsEmpty());
  EXPECT_LE(*core_.NextDeadline(), After(now_, 3));
  Wait(3);
  ASSERT_THAT(regroups_, SizeIs(1));
  EXPECT_THAT(regroups_[0].membership.members, IsEmpty());
}

}  // namespace
}  // namespace espalier
