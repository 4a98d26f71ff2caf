#include "tuner/core/estimates/promises.h"

#include <gtest/gtest.h>

#include "tests/core/parts_fixture.h"

namespace espalier {
namespace {

// A study with one trial, whose promise has been computed.
class PromisesTest : public PartsFixture {
 protected:
  static constexpr StudyId kStudy{1};
  static constexpr TrialId kTrial{1};

  PromisesTest() {
    StudySpec spec;
    spec.name = "s";
    Create(kStudy, spec);
    Train(kTrial, kStudy);
    EXPECT_TRUE(Due());
    promises_.Set(kTrial, 0.9);
  }

  bool Due() { return promises_.TakeDue(turn_.StudyAt(kStudy)); }
  void Report(std::int64_t step) {
    turn_.Emit(ValueReported{kTrial, {step, 0.5, 0, turn_.now(), 0}, {}});
  }
};

TEST_F(PromisesTest, IsDueOnceForEachThingThatIsNew) {
  EXPECT_FALSE(Due());
  Report(1);
  Report(2);
  EXPECT_TRUE(Due());
  EXPECT_FALSE(Due());
  promises_.NoteStale(kStudy);
  EXPECT_TRUE(Due());
  turn_.Emit(TrialCreated{TrialId(2), kStudy, 1, {}, turn_.now()});
  EXPECT_TRUE(Due());
  turn_.Emit(TrialStateChanged{kTrial, TrialState::kPruned, turn_.now(), "", 0.5, ""});
  EXPECT_TRUE(Due());
}

TEST_F(PromisesTest, OfALargeStudyOnceInAWhile) {
  for (std::int64_t i = 1; i <= static_cast<std::int64_t>(Promises::kEveryReport); ++i) {
    turn_.Emit(TrialCreated{TrialId(i + 1), kStudy, i, {}, turn_.now()});
  }
  EXPECT_TRUE(Due());
  Report(1);
  EXPECT_FALSE(Due()) << "it was just now";
  turn_.Begin(After(turn_.now(), Promises::kInterval_s));
  EXPECT_TRUE(Due());
}

TEST_F(PromisesTest, AreForgottenWithTheTrialAndTheStudy) {
  EXPECT_EQ(promises_.Find(kTrial), 0.9);
  turn_.Emit(TrialStateChanged{kTrial, TrialState::kPruned, turn_.now(), "", 0.5, ""});
  EXPECT_EQ(promises_.Find(kTrial), std::nullopt);
  turn_.Emit(TrialCreated{TrialId(2), kStudy, 1, {}, turn_.now()});
  promises_.Set(TrialId(2), 0.8);
  turn_.Emit(StudyDeleted{kStudy, kStudy, TrialId(2)});
  EXPECT_EQ(promises_.Find(TrialId(2)), std::nullopt);
}

TEST_F(PromisesTest, UntilItIsKnownATrialCountsAsAnyOther) {
  EXPECT_EQ(promises_.Find(TrialId(2)), std::nullopt);
  EXPECT_EQ(promises_.Of(TrialId(2)), Job{}.promise);
  EXPECT_EQ(promises_.Find(TrialId(2)), std::nullopt) << "asking changes nothing";
}

}  // namespace
}  // namespace espalier
