// Groups that take long to form: what moves is awaited, what does not is begun anew.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/core/core_fixture.h"

namespace espalier {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kGigabyte = 1'000'000'000;

class FormingTest : public CoreTest {
 protected:
  // Two replicas that have been told of a group and hand over state.
  std::vector<ReplicaId> TwoThatForm(const StudySpec& spec) {
    Step(CreateStudy{spec, false});
    Join(2);
    const ReplicaId first = Ready(starts_.at(0).replica);
    Form(regroups_);
    Wait(3);
    const ReplicaId second = Ready(starts_.at(0).replica);
    return {first, second};
  }

  void Say(ReplicaId replica, GroupPhase phase, std::int64_t bytes, std::int64_t total = 0) {
    Say(replica, phase, bytes, total, trial().generation);
  }
  void Say(ReplicaId replica, GroupPhase phase, std::int64_t bytes, std::int64_t total,
           std::int64_t generation) {
    Step(FromReplica{replica, ReplicaForming{generation, phase, bytes, total}});
  }
  // So many seconds in which so many bytes are moved.
  void Move(ReplicaId replica, int seconds, std::int64_t bytes_a_second, std::int64_t total) {
    for (int i = 0; i < seconds; ++i) {
      Wait(1);
      moved_ += bytes_a_second;
      Say(replica, GroupPhase::kHandingOver, moved_, total);
    }
  }

  std::int64_t moved_ = 0;
};

TEST_F(FormingTest, StateIsHandedOverForAsLongAsItMoves) {
  const auto replicas = TwoThatForm(Spec(1));
  const std::int64_t generation = trial().generation;
  Move(replicas[0], 1000, kGigabyte / 100, 10 * kGigabyte);
  EXPECT_EQ(trial().generation, generation);
  EXPECT_THAT(stops_, IsEmpty());
  const ReplicaForming forming = core_.Activity(TrialId(1)).forming;
  EXPECT_EQ(forming.phase, GroupPhase::kHandingOver);
  EXPECT_EQ(forming.bytes, 10 * kGigabyte);
  EXPECT_EQ(forming.bytes_total, 10 * kGigabyte);
  for (const ReplicaId replica : replicas) {
    Step(FromReplica{replica, ReplicaRegrouped{generation, 0, 1000}});
  }
  EXPECT_EQ(core_.Activity(TrialId(1)).forming.phase, GroupPhase::kNone);
  EXPECT_EQ(trial().resizes.back().pause_s, 1000);
}

TEST_F(FormingTest, AHandOverThatStallsIsBegunAnew) {
  const auto replicas = TwoThatForm(Spec(1));
  const std::int64_t generation = trial().generation;
  Move(replicas[0], 100, kGigabyte / 100, 10 * kGigabyte);
  EXPECT_LE(*core_.NextDeadline(), After(now_, 30));
  // Said again it is no progress.
  Wait(20);
  Say(replicas[0], GroupPhase::kHandingOver, moved_, 10 * kGigabyte);
  Wait(9);
  EXPECT_EQ(trial().generation, generation);
  Wait(2);
  EXPECT_EQ(trial().generation, generation + 1);
  ASSERT_THAT(regroups_, SizeIs(2));
  EXPECT_TRUE(regroups_[0].membership.abandon);
  EXPECT_EQ(core_.Activity(TrialId(1)).forming.bytes, 0) << "nothing of it counts any more";
}

TEST_F(FormingTest, WordsOfAnEarlierGenerationAreNoProgress) {
  const auto replicas = TwoThatForm(Spec(1));
  const std::int64_t generation = trial().generation;
  Wait(31);
  ASSERT_EQ(trial().generation, generation + 1);
  for (int i = 1; i <= 31; ++i) {
    Wait(1);
    Say(replicas[0], GroupPhase::kHandingOver, i * kGigabyte, 0, generation);
  }
  EXPECT_EQ(trial().generation, generation + 2);
}

TEST_F(FormingTest, WhoArrivesMovesTheGroupOn) {
  const auto replicas = TwoThatForm(Spec(1));
  const std::int64_t generation = trial().generation;
  Wait(25);
  Say(replicas[0], GroupPhase::kMeeting, 0);
  Wait(25);
  Step(FromReplica{replicas[0], ReplicaRegrouped{generation, 0, 0.01}});
  Wait(25);
  EXPECT_EQ(trial().generation, generation);
  Wait(6);
  EXPECT_EQ(trial().generation, generation + 1);
}

TEST_F(FormingTest, AStudySaysHowLongAStallMayBe) {
  StudySpec spec = Spec(1);
  spec.timeouts.stall_s = 300;
  TwoThatForm(spec);
  const std::int64_t generation = trial().generation;
  Wait(299);
  EXPECT_EQ(trial().generation, generation);
  Wait(2);
  EXPECT_EQ(trial().generation, generation + 1);
}

TEST_F(FormingTest, ACheckpointThatIsBeingWrittenIsNotCutOff) {
  const auto replicas = TwoReplicas();
  Step(StopStudy{"s"});
  ASSERT_TRUE(regroups_.at(0).membership.members.empty());
  EXPECT_EQ(core_.Activity(TrialId(1)).forming.phase, GroupPhase::kSaving);
  std::set<ReplicaId> stopped;
  for (int i = 1; i <= 400; ++i) {
    Wait(1);
    for (const StopReplicaCommand& stop : stops_) stopped.insert(stop.replica);
    Say(replicas[0], GroupPhase::kSaving, i * kGigabyte / 100);
  }
  EXPECT_EQ(stopped, std::set{replicas[1]}) << "who writes nothing has had its time";
  EXPECT_EQ(core_.Activity(TrialId(1)).forming.bytes, 4 * kGigabyte);
  const auto stops_first = [&] {
    return std::any_of(stops_.begin(), stops_.end(),
                       [&](const StopReplicaCommand& stop) { return stop.replica == replicas[0]; });
  };
  Wait(28);
  EXPECT_FALSE(stops_first());
  Wait(3);
  EXPECT_TRUE(stops_first()) << "30 s without a byte";
}

// It would hold its slot until it is taken for one that does not get to its end.
TEST_F(FormingTest, AReplicaThatIsStillStartingIsStoppedWhenItsTrialIsComplete) {
  Step(CreateStudy{Spec(1), false});
  Join(2);
  const ReplicaId first = Ready(starts_.at(0).replica);
  Form(regroups_);
  Wait(3);
  const ReplicaId joiner = starts_.at(0).replica;
  Step(FromReplica{first, ReplicaReport{1, 0.5, 0}});
  Step(FromReplica{first, ReplicaFinished{}});
  EXPECT_EQ(trial().state, TrialState::kComplete);
  ASSERT_THAT(stops_, SizeIs(1)) << "the one that has trained goes by itself";
  EXPECT_EQ(stops_[0].replica, joiner);
}

TEST_F(FormingTest, AReplicaThatIsToJoinIsStoppedWhenItsTrialIsComplete) {
  const auto replicas = TwoThatForm(Spec(1));
  Step(FromReplica{replicas[0], ReplicaReport{1, 0.5, 0}});
  Step(FromReplica{replicas[0], ReplicaFinished{}});
  ASSERT_THAT(stops_, SizeIs(1));
  EXPECT_EQ(stops_[0].replica, replicas[1]);
}

}  // namespace
}  // namespace espalier
