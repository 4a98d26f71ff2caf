// Studies that end by time or by money.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "tests/core/core_fixture.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class LimitsTest : public CoreTest {
 protected:
  // A study without an end but its limits, on so many slots.
  void Start(StudySpec spec, int slots) {
    Step(CreateStudy{std::move(spec), false});
    Join(slots);
  }
  StudySpec WithTimeLimit(double seconds) {
    StudySpec spec = Spec(0);
    spec.time_limit_s = seconds;
    return spec;
  }
  // At a cent a slot-second.
  StudySpec WithCostLimit(double limit) {
    StudySpec spec = Spec(0);
    spec.cost_limit = limit;
    spec.slot_price_per_hour = 36;
    return spec;
  }
  // The only trial so far tells its last value, and its process goes.
  void FirstCompletes() {
    Step(TellValue{TrialId(1), 1, 0.5, true});
    Step(ReplicaExited{ReplicaId(1), 0, 0, "", ""});
  }
  bool Told(const std::string& reason) {
    return std::any_of(study().decisions.begin(), study().decisions.end(),
                       [&](const Decision& decision) { return decision.reason == reason; });
  }
  double Spent() { return SpentOn(core_.state(), study(), now_); }
  // As the service does: a look whenever the core asked for one, for so long.
  void RunFor(double seconds) {
    const Time until = After(now_, seconds);
    while (const auto next = core_.NextDeadline()) {
      if (*next > until) break;
      now_ = std::max(*next, now_);
      Step(Tick{});
      if (study().state != StudyState::kRunning) return;
    }
    now_ = std::max(now_, until);
  }
};

TEST_F(LimitsTest, SlotSecondsAreThoseHeld) {
  StudySpec spec = Spec(2);
  spec.slot_price_per_hour = 7.2;
  Start(spec, 2);
  Wait(50);
  EXPECT_NEAR(SlotSeconds(core_.state(), study(), now_), 100, 1);
  EXPECT_NEAR(Spent(), 0.2, 0.002);
  Step(ReplicaExited{ReplicaId(1), 1, 0, "", ""});
  Wait(50);
  EXPECT_NEAR(SlotSeconds(core_.state(), study(), now_), 150, 1);
}

class CostLimitTest : public LimitsTest, public ::testing::WithParamInterface<double> {};

TEST_P(CostLimitTest, EndsTheStudyBeforeItIsExceeded) {
  StudySpec spec = WithCostLimit(1);
  spec.stop_grace_s = GetParam();
  Start(spec, 4);
  ASSERT_EQ(starts_.size(), 4u);
  Step(TellValue{TrialId(1), 1, 0.5, false});
  RunFor(1000);
  ASSERT_EQ(study().state, StudyState::kComplete);
  EXPECT_THAT(study().reason, StartsWith("cost limit of 1 reached"));
  for (const TrialId id : study().trials) EXPECT_TRUE(Ended(trial(id.value).state));
  // Its processes take all the time they are given.
  now_ = After(now_, spec.stop_grace_s);
  EXPECT_LT(Spent(), 1);
  EXPECT_GT(Spent(), 0.95);
  EXPECT_EQ(trial(1).state, TrialState::kPruned);
  EXPECT_EQ(trial(1).value, 0.5);
}

INSTANTIATE_TEST_SUITE_P(Grace, CostLimitTest, ::testing::Values(0.0, 5.0));

TEST_F(LimitsTest, ResumedWithoutMoneyEndsAgain) {
  Start(WithCostLimit(0.01), 1);
  RunFor(100);
  ASSERT_EQ(study().state, StudyState::kComplete);
  Step(ResumeStudy{"s"});
  RunFor(10);
  EXPECT_EQ(study().state, StudyState::kComplete);
}

TEST_F(LimitsTest, NoTrialIsStartedThatCannotGetToItsEnd) {
  Start(WithTimeLimit(100), 1);
  Wait(60);
  FirstCompletes();
  EXPECT_EQ(study().trials.size(), 1u) << "the only trial so far took 60 s, and 40 s are left";
  EXPECT_EQ(study().state, StudyState::kComplete);
  EXPECT_THAT(study().reason, HasSubstr("too little for a new trial"));
  EXPECT_TRUE(Told("no new trials: 40 s are left, the fastest so far needs 60 s"));
}

TEST_F(LimitsTest, TrialsAreStartedWhileThereIsTimeForThem) {
  Start(WithTimeLimit(100), 1);
  Wait(40);
  FirstCompletes();
  EXPECT_EQ(study().trials.size(), 2u);
}

TEST_F(LimitsTest, KnowsFromStepsHowLongATrialTakes) {
  StudySpec spec = WithTimeLimit(100);
  spec.max_step = 20;
  Start(spec, 1);
  Wait(8);
  Step(TellValue{TrialId(1), 2, 0.5, false});  // 80 s to its end
  Wait(22);
  Step(ReplicaExited{ReplicaId(1), 1, 0, "", ""});
  EXPECT_EQ(study().trials.size(), 1u);
}

}  // namespace
}  // namespace espalier
