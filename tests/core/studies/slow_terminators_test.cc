// Terminators that take long, and are asked beside the owner of the core: the test answers for
// them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/core/parts_fixture.h"
#include "tuner/core/studies/terminations.h"
#include "tuner/core/terminators/question.h"

namespace espalier {
namespace {

constexpr StudyId kStudyThatMayEnd{1};

// Ends a study after three trials, after long thought.
class SlowTerminator final : public Terminator {
 public:
  TerminatorVerdict Judge(const TerminatorInput& input) const override {
    if (input.ended.size() < 3) return {false, "two are too few"};
    return {true, "three have ended, the last with " + std::to_string(input.ended.back().value)};
  }
  double Work(const TerminatorInput&) const override { return 1e9; }
};

class SlowTerminators : public PartsFixture {
 protected:
  SlowTerminators() {
    options_.plan_aside = true;
    observe_ = [this](const Change& change) { terminations_.Observe(change); };
    StudySpec spec;
    spec.name = "s";
    spec.terminator = {"stagnation", {}};
    PartsFixture::Create(kStudyThatMayEnd, spec);
    plugins_.Of(turn_.StudyAt(kStudyThatMayEnd)).terminator = std::make_shared<SlowTerminator>();
  }

  // Returns the questions of the step.
  std::vector<std::shared_ptr<const TerminatorQuestion>> End(std::int64_t number) {
    const TrialId id(number + 1);
    turn_.Emit(TrialCreated{id, kStudyThatMayEnd, number, {}, turn_.now()});
    turn_.Emit(TrialStateChanged{id, TrialState::kRunning, turn_.now(), "", std::nullopt, ""});
    turn_.Emit(TrialStateChanged{id, TrialState::kComplete, turn_.now(), "", 0.5, ""});
    return Settle();
  }
  std::vector<std::shared_ptr<const TerminatorQuestion>> Settle() {
    terminations_.EndTerminated();
    return turn_.Finish().questions;
  }
  TerminatorAnswered AnswerOf(const TerminatorQuestion& question) {
    return {question.study, question.number, AnswerTo(question, {})};
  }
  const Study& study() { return turn_.StudyAt(kStudyThatMayEnd); }

  Terminations terminations_{turn_, options_, plugins_, trials_};
};

TEST_F(SlowTerminators, AreAskedOneQuestionAtATimeAndEndTheStudyWhenTheyAnswer) {
  const auto first = End(0);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_TRUE(End(1).empty()) << "the first is under way";
  EXPECT_TRUE(End(2).empty());
  terminations_.On(AnswerOf(*first.front()));
  EXPECT_EQ(study().state, StudyState::kRunning);
  const auto second = Settle();
  ASSERT_EQ(second.size(), 1u) << "of what has ended meanwhile";
  EXPECT_NE(second.front()->seed, first.front()->seed);
  terminations_.On(AnswerOf(*second.front()));
  EXPECT_EQ(study().state, StudyState::kComplete);
  EXPECT_EQ(study().reason, "stagnation: three have ended, the last with 0.500000");
}

TEST_F(SlowTerminators, AreAskedWithinTheStepWhereNobodyAnswersForThem) {
  options_.plan_aside = false;
  for (std::int64_t n = 0; n < 3; ++n) EXPECT_TRUE(End(n).empty());
  EXPECT_EQ(study().state, StudyState::kComplete);
}

TEST_F(SlowTerminators, EndNoStudyThatHasStoppedOrIsGone) {
  End(0);
  End(1);
  turn_.Emit(StudyStateChanged{kStudyThatMayEnd, StudyState::kStopped, "", turn_.now()});
  terminations_.On({kStudyThatMayEnd, 1, {true, "it is enough"}});
  EXPECT_EQ(study().state, StudyState::kStopped);
  terminations_.On({kStudyThatMayEnd, 7, {true, "nobody has asked this"}});
  turn_.Emit(StudyDeleted{kStudyThatMayEnd, turn_.state().last_study, turn_.state().last_trial});
  terminations_.On({kStudyThatMayEnd, 1, {true, "it is enough"}});
  EXPECT_FALSE(turn_.state().studies.contains(kStudyThatMayEnd));
}

// Nothing of a trial that has ended is copied for another question.
TEST_F(SlowTerminators, AreAskedAgainOfWhatIsKept) {
  const auto first = End(0);
  ASSERT_EQ(first.size(), 1u);
  terminations_.On(AnswerOf(*first.front()));
  const auto second = End(1);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second.front()->ended.at(0).parameters, first.front()->ended.at(0).parameters);
  EXPECT_EQ(second.front()->ended.size(), 2u);
}

TEST_F(SlowTerminators, TellOnceWhatTheyLack) {
  for (std::int64_t n = 0; n < 2; ++n) {
    const auto questions = End(n);
    ASSERT_EQ(questions.size(), 1u);
    terminations_.On(AnswerOf(*questions.front()));
  }
  EXPECT_EQ(study().state, StudyState::kRunning);
  EXPECT_EQ(std::ranges::count(study().decisions, "stagnation: two are too few", &Decision::reason),
            1);
}

// What a question is made of stays, whatever becomes of the study.
TEST_F(SlowTerminators, AnswerFromWhatWasWhenTheyWereAsked) {
  const auto question = End(0);
  ASSERT_EQ(question.size(), 1u);
  turn_.Emit(StudyDeleted{kStudyThatMayEnd, turn_.state().last_study, turn_.state().last_trial});
  ASSERT_EQ(question.front()->ended.size(), 1u);
  EXPECT_TRUE(question.front()->ended.front().parameters->empty());
  EXPECT_FALSE(AnswerTo(*question.front(), {}).ends);
}

}  // namespace
}  // namespace espalier
