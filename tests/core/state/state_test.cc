#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tuner/core/state/change.h"

namespace espalier {
namespace {

using testing::ElementsAre;

constexpr StudyId kStudy(1);
constexpr TrialId kTrial(4);

Time At(double seconds) { return TimeFromSeconds(seconds); }

class State : public testing::Test {
 protected:
  State() {
    StudySpec spec;
    spec.name = "s";
    Apply(StudyCreated{kStudy, spec, At(10)});
    Apply(TrialCreated{kTrial, kStudy, 0, {{"lr", 0.1}}, At(11)});
  }

  void Apply(const Change& change) { state_.Apply(change); }
  void Enter(TrialState state, double at, std::optional<double> value = std::nullopt) {
    Apply(TrialStateChanged{kTrial, state, At(at), "because", value, ""});
  }
  void Hold(double at, std::vector<Slot> slots) {
    Apply(SlotsHeldChanged{kTrial, At(at), std::move(slots)});
  }
  const Study& study() const { return state_.studies.at(kStudy); }
  const Trial& trial() const { return state_.trials.at(kTrial); }

  TunerState state_;
};
using StateDeath = State;

TEST_F(State, FindsAStudyByName) {
  EXPECT_EQ(state_.FindStudy("s"), &study());
  EXPECT_EQ(state_.FindStudy("t"), nullptr);
}

TEST_F(State, FindsAStudyByTheNameThatItHasNow) {
  Apply(StudyRenamed{kStudy, "t"});
  EXPECT_EQ(state_.FindStudy("s"), nullptr);
  EXPECT_EQ(state_.FindStudy("t"), &study());
  Apply(StudyDeleted{kStudy, kStudy, kTrial});
  EXPECT_EQ(state_.FindStudy("t"), nullptr);
  StudySpec spec;
  spec.name = "t";
  Apply(StudyCreated{StudyId(2), spec, At(20)});
  EXPECT_EQ(state_.FindStudy("t")->id, StudyId(2));
}

TEST_F(State, FreesTheTrialsOfADeletedStudyAFewAtATime) {
  for (int number = 1; number < 5; ++number) {
    Apply(TrialCreated{TrialId(kTrial.value + number), kStudy, number, {}, At(12)});
  }
  EXPECT_FALSE(state_.dropped.Free(2)) << "there is nothing yet";
  Apply(StudyDeleted{kStudy, kStudy, TrialId(8)});
  EXPECT_TRUE(state_.trials.empty());
  EXPECT_TRUE(state_.dropped.Free(2));
  EXPECT_TRUE(state_.dropped.Free(2));
  EXPECT_FALSE(state_.dropped.Free(2)) << "one of five was left";
}

TEST_F(State, VisitsTheTrialsOfOneStudyByNumber) {
  StudySpec spec;
  spec.name = "other";
  Apply(StudyCreated{StudyId(2), spec, At(12)});
  Apply(TrialCreated{TrialId(5), StudyId(2), 0, {}, At(13)});
  Apply(TrialCreated{TrialId(6), kStudy, 1, {}, At(13)});
  Apply(TrialCreated{TrialId(7), kStudy, 2, {}, At(13)});
  Apply(TrialCreated{TrialId(9), StudyId(2), 1, {}, At(13)});
  std::vector<std::int64_t> ids;
  state_.ForEachTrial(study(), [&](const Trial& t) { ids.push_back(t.id.value); });
  EXPECT_THAT(ids, ElementsAre(4, 6, 7));
  Apply(StudyDeleted{kStudy, StudyId(2), TrialId(9)});
  ASSERT_EQ(state_.trials.size(), 2u);
  EXPECT_TRUE(state_.trials.contains(TrialId(5)));
  EXPECT_TRUE(state_.trials.contains(TrialId(9)));
}

TEST_F(State, StartsATrialOnceAndEndsIt) {
  Enter(TrialState::kRunning, 12);
  Enter(TrialState::kPaused, 13);
  Enter(TrialState::kRunning, 14);
  EXPECT_EQ(trial().started, At(12));
  EXPECT_EQ(trial().ended, Time{});
  Enter(TrialState::kComplete, 15, 0.9);
  EXPECT_EQ(trial().started, At(12));
  EXPECT_EQ(trial().ended, At(15));
  EXPECT_EQ(trial().value, 0.9);
  EXPECT_EQ(trial().reason, "because");
}

TEST_F(State, LeavesATrialThatNeverRanWithoutAStart) {
  Enter(TrialState::kFail, 12);
  EXPECT_EQ(trial().started, Time{});
  EXPECT_EQ(trial().ended, At(12));
}

TEST_F(State, KeepsValuesAscendingByStep) {
  for (const std::int64_t step : {3, 1, 2, 7})
    Apply(ValueReported{kTrial, {step, 0.5, 0, At(1), 0}});
  std::vector<std::int64_t> steps;
  for (const IntermediateValue& value : trial().values) steps.push_back(value.step);
  EXPECT_THAT(steps, ElementsAre(1, 2, 3, 7));
}

TEST_F(State, AnEndedTrialHoldsNoMoreMemoryThanItsValuesNeed) {
  Enter(TrialState::kRunning, 12);
  for (std::int64_t step = 1; step <= 20; ++step) {
    Apply(ValueReported{kTrial, {step, 0.5, 0, At(13), 0}});
  }
  EXPECT_GT(trial().values.capacity(), 20u);
  Enter(TrialState::kComplete, 15, 0.9);
  EXPECT_EQ(trial().values.capacity(), 20u);
}

TEST_F(State, ClosesASpanOfSlotsWhenTheNextOpens) {
  const Slot a{NodeId(1), 0};
  const Slot b{NodeId(1), 1};
  Hold(20, {a});
  Hold(25, {a, b});
  Hold(30, {});
  Hold(40, {b});
  EXPECT_THAT(trial().spans,
              ElementsAre(SlotSpan{At(20), At(25), {a}}, SlotSpan{At(25), At(30), {a, b}},
                          SlotSpan{At(40), Time{}, {b}}));
}

TEST_F(State, DropsASpanThatLastedNoTime) {
  const Slot a{NodeId(1), 0};
  const Slot b{NodeId(1), 1};
  Hold(20, {a});
  Hold(20, {b});
  Hold(15, {a});  // the clock was set back
  EXPECT_THAT(trial().spans, ElementsAre(SlotSpan{At(15), Time{}, {a}}));
}

TEST_F(State, CountsOnlyTheTimeThatAStudyRuns) {
  Apply(StudyStateChanged{kStudy, StudyState::kStopped, "by the user", At(15)});
  EXPECT_DOUBLE_EQ(study().active_s, 5);
  EXPECT_EQ(study().reason, "by the user");
  EXPECT_EQ(study().ended, Time{});
  Apply(StudyStateChanged{kStudy, StudyState::kRunning, "", At(100)});
  EXPECT_EQ(study().running_since, At(100));
  Apply(StudyStateChanged{kStudy, StudyState::kComplete, "done", At(107)});
  EXPECT_DOUBLE_EQ(study().active_s, 12);
  EXPECT_EQ(study().ended, At(107));
}

TEST_F(State, ForgetsTheEndOfAStudyThatRunsAgain) {
  Apply(StudyStateChanged{kStudy, StudyState::kFailed, "five failures", At(15)});
  Apply(StudyStateChanged{kStudy, StudyState::kRunning, "", At(20)});
  EXPECT_EQ(study().ended, Time{});
  EXPECT_EQ(study().reason, "");
}

TEST_F(State, NeverCountsTimeBackwards) {
  Apply(StudyClockSet{kStudy, 3, At(50)});
  Apply(StudyStateChanged{kStudy, StudyState::kStopped, "", At(40)});
  EXPECT_DOUBLE_EQ(study().active_s, 3);
}

TEST_F(StateDeath, RefusesChangesThatDoNotFit) {
  EXPECT_DEATH(Apply(TrialCreated{TrialId(4), kStudy, 1, {}, At(1)}), "above all others");
  EXPECT_DEATH(Apply(TrialCreated{TrialId(5), kStudy, 2, {}, At(1)}), "has number 2");
  EXPECT_DEATH(Apply(TrialCreated{TrialId(5), StudyId(9), 0, {}, At(1)}), "no study with id 9");
  EXPECT_DEATH(Enter(TrialState::kComplete, 12), "COMPLETE after WAITING");
  EXPECT_DEATH(Apply(CheckpointRecorded{TrialId(9), "/c"}), "no trial with id 9");
  EXPECT_DEATH(Apply(StudyCreated{kStudy, {}, At(1)}), "is not new");
  EXPECT_DEATH(Apply(ReplicaIdsReserved{0}), "are reserved");
  Apply(ValueReported{kTrial, {1, 0.5, 0, At(1), 0}});
  EXPECT_DEATH(Apply(ValueReported{kTrial, {1, 0.6, 0, At(1), 0}}), "has step 1 already");
  Apply(GenerationAdvanced{kTrial, 2});
  EXPECT_DEATH(Apply(GenerationAdvanced{kTrial, 2}), "generation 2 after 2");
  Apply(NodeRegistered{NodeId(1), "n"});
  EXPECT_DEATH(Apply(NodeRegistered{NodeId(1), "m"}), "is not new");
}

TEST_F(State, AReportedValueReplacesOneOnlyWhereItSaysSo) {
  Apply(ValueReported{kTrial, {1, 0.5, 0, At(1), 0}, {{"loss", 2}}});
  Apply(ValueReported{kTrial, {1, 0.25, 0, At(2), 0}, {}, true});
  Apply(ValueReported{kTrial, {0, 0.75, 0, At(3), 0}, {}, true});
  ASSERT_EQ(trial().values.size(), 2U);
  EXPECT_EQ(trial().values[0].value, 0.75);
  EXPECT_EQ(trial().values[1].value, 0.25);
  EXPECT_EQ(trial().extra.at(1).at("loss"), 2) << "its further figures stay";
}

TEST_F(State, WhatIsToldBeforeTheEndIsTheFinalValue) {
  Enter(TrialState::kRunning, 12);
  Apply(FinalValueReported{kTrial, 0.5});
  EXPECT_EQ(trial().value, 0.5);
  EXPECT_EQ(trial().state, TrialState::kRunning);
}

TEST(MayFollow, HasARowForEachSource) {
  using enum TrialState;
  EXPECT_FALSE(MayFollow(kWaiting, kComplete, StateSource::kPool)) << "what never ran";
  EXPECT_TRUE(MayFollow(kRunning, kPaused, StateSource::kPool));
  EXPECT_TRUE(MayFollow(kWaiting, kComplete, StateSource::kClient));
  EXPECT_TRUE(MayFollow(kRunning, kWaiting, StateSource::kClient));
  EXPECT_TRUE(MayFollow(kWaiting, kWaiting, StateSource::kImport));
  EXPECT_TRUE(MayFollow(kWaiting, kFail, StateSource::kImport));
  EXPECT_FALSE(MayFollow(kRunning, kComplete, StateSource::kImport)) << "it is here already";
  for (const TrialState any : {kWaiting, kRunning, kPaused, kComplete, kPruned, kFail}) {
    EXPECT_FALSE(MayFollow(any, kPaused, StateSource::kClient));
    EXPECT_FALSE(MayFollow(any, kPaused, StateSource::kImport));
    for (const TrialState ended : {kComplete, kPruned, kFail}) {
      for (const auto source : {StateSource::kPool, StateSource::kClient, StateSource::kImport}) {
        EXPECT_FALSE(MayFollow(ended, any, source));
      }
    }
  }
}

TEST_F(StateDeath, OnWhatAClientMayNotTell) {
  EXPECT_DEATH(Apply(TrialTold{kTrial, TrialState::kPaused, {}, {}, {}}), "PAUSED after WAITING");
  Enter(TrialState::kRunning, 12);
  EXPECT_DEATH(
      Apply(TrialTold{kTrial, TrialState::kComplete, {1}, {}, At(13), StateSource::kImport}),
      "COMPLETE after RUNNING");
  Enter(TrialState::kPaused, 13);
  EXPECT_DEATH(Apply(TrialTold{kTrial, TrialState::kFail, {}, {}, At(14)}), "FAIL after PAUSED");
}

}  // namespace
}  // namespace espalier
