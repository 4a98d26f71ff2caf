#include "tuner/core/estimates/speeds.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

// Two studies; the first has two trials, the second one.
class SpeedsTest : public ::testing::Test {
 protected:
  SpeedsTest() {
    for (const char* name : {"a", "b"}) {
      StudySpec spec;
      spec.name = name;
      Emit(StudyCreated{StudyId(state_.last_study.value + 1), spec, Time{}});
    }
    Emit(TrialCreated{TrialId(1), StudyId(1), 0, {}, Time{}});
    Emit(TrialCreated{TrialId(2), StudyId(1), 1, {}, Time{}});
    Emit(TrialCreated{TrialId(3), StudyId(2), 0, {}, Time{}});
    group_.batch = {64, 64, 1, 64, true};
    group_.noise = {1, 1};
    progress_.profile.push_back({{1, 1, 64}, 10, 10.0, 10, 10.0, 0});
  }

  void Emit(const Change& change) {
    state_.Apply(change);
    speeds_.Observe(change);
  }
  void Resized(TrialId id, double pause_s) {
    Resize resize;
    resize.pause_s = pause_s;
    Emit(ResizeMeasured{id, resize});
  }
  void End(TrialId id) {
    Emit(TrialStateChanged{id, TrialState::kFail, Time{}, "", std::nullopt, ""});
  }
  const Trial& At(TrialId id) { return state_.trials.at(id); }

  TunerState state_;
  Speeds speeds_{state_, /*fit_aside=*/true};
  Group group_;
  ReplicaProgress progress_;
};

TEST_F(SpeedsTest, AResizeCostsWhatTheTrialsOwnDidOrThoseOfItsStudy) {
  EXPECT_EQ(speeds_.ResizeCost_s(At(TrialId(1))), std::nullopt);
  Resized(TrialId(1), 2);
  Resized(TrialId(1), 4);
  EXPECT_EQ(speeds_.ResizeCost_s(At(TrialId(1))), 3);
  EXPECT_EQ(speeds_.ResizeCost_s(At(TrialId(2))), 3) << "it had none: as the study's others";
  Resized(TrialId(2), 9);
  EXPECT_EQ(speeds_.ResizeCost_s(At(TrialId(2))), 9);
  EXPECT_EQ(speeds_.ResizeCost_s(At(TrialId(3))), std::nullopt) << "of another study";
}

TEST_F(SpeedsTest, ADeletedStudysResizesAreForgotten) {
  Resized(TrialId(1), 2);
  const Trial before = At(TrialId(2));
  Emit(StudyDeleted{StudyId(1), state_.last_study, state_.last_trial});
  EXPECT_EQ(speeds_.ResizeCost_s(before), std::nullopt);
}

TEST_F(SpeedsTest, AreFittedOnceAndOnlyWhereSomethingIsNew) {
  EXPECT_TRUE(speeds_.Learn(TrialId(1), "A", group_, progress_));
  EXPECT_FALSE(speeds_.Learn(TrialId(1), "A", group_, progress_)) << "the same step times";
  const std::vector<SpeedToFit> due = speeds_.TakeDue();
  ASSERT_EQ(due.size(), 1u);
  EXPECT_TRUE(speeds_.TakeDue().empty());
  EXPECT_EQ(speeds_.FittedFor(TrialId(1), "A"), std::nullopt);
  speeds_.TakeFitted({TrialId(1), "A", Fit(due[0].profile, due[0].warm_start)});
  EXPECT_TRUE(speeds_.FittedFor(TrialId(1), "A").has_value());
  EXPECT_EQ(speeds_.FittedFor(TrialId(1), "B"), std::nullopt);
}

TEST_F(SpeedsTest, EndWithTheTrialAndWithItsStudy) {
  for (const std::int64_t id : {1, 2, 3}) {
    speeds_.Learn(TrialId(id), "A", group_, progress_);
    speeds_.TakeFitted({TrialId(id), "A", ThroughputParams{}});
  }
  End(TrialId(1));
  EXPECT_FALSE(speeds_.FittedFor(TrialId(1), "A").has_value());
  Emit(StudyDeleted{StudyId(1), state_.last_study, state_.last_trial});
  EXPECT_FALSE(speeds_.FittedFor(TrialId(2), "A").has_value());
  const std::vector<SpeedToFit> due = speeds_.TakeDue();
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].trial, TrialId(3));
  speeds_.TakeFitted({TrialId(1), "A", ThroughputParams{}});
  EXPECT_FALSE(speeds_.FittedFor(TrialId(1), "A").has_value()) << "it came too late";
}

TEST_F(SpeedsTest, BadNumbersAreNotedOnceATrial) {
  EXPECT_TRUE(speeds_.NoteRefused(TrialId(1)));
  EXPECT_FALSE(speeds_.NoteRefused(TrialId(1)));
  EXPECT_TRUE(speeds_.NoteRefused(TrialId(2)));
}

}  // namespace
}  // namespace espalier
