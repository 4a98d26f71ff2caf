// Draws that are made beside the owner of the core: the test makes them, when it likes.

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/core/core_fixture.h"
#include "tuner/core/clients/client_trials.h"
#include "tuner/core/samplers/draw.h"
#include "tuner/core/scheduling/planner.h"

namespace espalier {
namespace {

using testing::HasSubstr;

constexpr int kTrialsBefore = 12;  // more than the sampler's first ones, which are random

class DrawsTest : public CoreTest {
 protected:
  DrawsTest() : CoreTest({.plan_aside = true}) {}

  StudySpec Slow(StudyKind kind) {
    StudySpec spec = Spec(/*trials=*/0);
    spec.kind = kind;
    spec.metric = "v";
    spec.space = *SearchSpace::FromJson(R"({"x": {"_type": "uniform", "_value": [0, 1]},
                                            "y": {"_type": "uniform", "_value": [0, 1]}})");
    spec.sampler = {"tpe", {{"candidates", 10'000}}};
    if (kind == StudyKind::kByClients) spec.command.clear();
    return spec;
  }

  // Plans are made at once.
  Reply Do(const Event& event) {
    now_ = After(now_, 0.01);
    StepResult result = core_.Step(now_, event);
    for (const auto& draw : result.draws) asked_.push_back(draw);
    for (const auto& [wait, reply] : result.late) late_[wait] = reply;
    if (result.plan) {
      Do(PlanMade{std::make_shared<const Plan>(planner_.Make(*result.plan))});
    }
    return result.reply;
  }

  DrawMade Made(const DrawRequest& request) {
    return {request.study, request.number,
            std::make_shared<const Drawn>(MakeDraw(request, std::stop_token()))};
  }
  void AnswerFirst() {
    ASSERT_FALSE(asked_.empty());
    const auto request = asked_.front();
    asked_.pop_front();
    Do(Made(*request));
  }

  Reply Ask() { return Do(AskTrial{"s", {}, {}}); }
  // A trial that has ended, with the value that is its parameter: the smaller the better.
  void AskAndTell() {
    Reply reply = Ask();
    if (reply.later()) {
      AnswerFirst();
      reply = late_.at(reply.wait());
    }
    ASSERT_TRUE(reply.status.ok()) << reply.status;
    Do(TellEnd{.trial = reply.trial(),
               .state = TrialState::kComplete,
               .values = {core_.state().trials.at(reply.trial()).suggested.at(0).value}});
  }
  void AskedBefore() {
    ASSERT_TRUE(Do(CreateStudy{Slow(StudyKind::kByClients), false}).status.ok());
    for (int i = 0; i < kTrialsBefore; ++i) AskAndTell();
    ASSERT_TRUE(asked_.empty());
  }
  double ValueOf(TrialId id) { return core_.state().trials.at(id).suggested.at(0).value; }

  Planner planner_;
  std::deque<std::shared_ptr<const DrawRequest>> asked_;
  std::map<LaterReply, Reply> late_;
};

TEST_F(DrawsTest, TheTrialOfAPoolStartsWhenItsDrawHasCome) {
  ASSERT_TRUE(Do(CreateStudy{Slow(StudyKind::kTuned), false}).status.ok());
  Do(AgentHello{"node", kTrialsBefore, {}});
  for (int i = 0; i < 100 && asked_.empty(); ++i) {
    now_ = After(now_, 1);
    Do(Tick{});
    for (const auto& [id, trial] : core_.state().trials) {
      if (!Ended(trial.state))
        Do(TellEnd{id, TrialState::kComplete, {static_cast<double>(trial.number)}});
    }
  }
  ASSERT_EQ(asked_.size(), 1U) << "one at a time";
  const std::size_t before = study().trials.size();
  now_ = After(now_, 10);
  Do(Tick{});
  EXPECT_EQ(asked_.size(), 1U) << "and not again while it is under way";
  EXPECT_EQ(study().trials.size(), before);
  const DrawMade made = Made(*asked_.front());
  Do(made);
  ASSERT_EQ(study().trials.size(), before + 1);
  EXPECT_EQ(core_.state().trials.at(study().trials.back()).parameters, *made.drawn->parameters);
}

TEST_F(DrawsTest, AClientIsAnsweredWhenItsDrawHasCome) {
  AskedBefore();
  const Reply reply = Ask();
  ASSERT_TRUE(reply.later());
  const std::size_t before = study().trials.size();
  AnswerFirst();
  ASSERT_TRUE(late_.contains(reply.wait()));
  const Reply late = late_.at(reply.wait());
  ASSERT_TRUE(late.status.ok()) << late.status;
  EXPECT_EQ(study().trials.size(), before + 1);
  EXPECT_EQ(core_.state().trials.at(late.trial()).state, TrialState::kRunning);
}

// So does a core that draws within its step: what comes of a seed depends on neither.
TEST_F(DrawsTest, WhatIsDrawnAsideIsWhatWouldHaveBeenDrawnHere) {
  AskedBefore();
  const Reply reply = Ask();
  AnswerFirst();
  Core here(TunerState{}, CoreOptions{});
  Time now{1'000'000};
  const auto step = [&](const Event& event) {
    now = After(now, 0.01);
    return here.Step(now, event).reply;
  };
  step(CreateStudy{Slow(StudyKind::kByClients), false});
  TrialId last;
  for (int i = 0; i <= kTrialsBefore; ++i) {
    last = step(AskTrial{"s", {}, {}}).trial();
    const double value = here.state().trials.at(last).suggested.at(0).value;
    if (i < kTrialsBefore) step(TellEnd{last, TrialState::kComplete, {value}});
  }
  EXPECT_EQ(ValueOf(late_.at(reply.wait()).trial()),
            here.state().trials.at(last).suggested.at(0).value);
}

TEST_F(DrawsTest, AsksThatOverlapAreAnsweredInTurnAndSeeEachOther) {
  AskedBefore();
  const Reply first = Ask(), second = Ask();
  ASSERT_EQ(asked_.size(), 1U);
  AnswerFirst();
  ASSERT_TRUE(late_.contains(first.wait()));
  EXPECT_FALSE(late_.contains(second.wait()));
  ASSERT_EQ(asked_.size(), 1U);
  EXPECT_EQ(asked_.front()->running.size(), 1U) << "the first one's trial";
  AnswerFirst();
  ASSERT_TRUE(late_.contains(second.wait()));
  EXPECT_NE(late_.at(first.wait()).trial(), late_.at(second.wait()).trial());
  EXPECT_NE(ValueOf(late_.at(first.wait()).trial()), ValueOf(late_.at(second.wait()).trial()));
}

TEST_F(DrawsTest, AnAskThatIsRepeatedWithItsKeyGetsOneTrial) {
  AskedBefore();
  const Reply first = Do(AskTrial{"s", {}, "k"});
  const Reply again = Do(AskTrial{"s", {}, "k"});
  AnswerFirst();
  EXPECT_EQ(late_.at(first.wait()).trial(), late_.at(again.wait()).trial());
  EXPECT_TRUE(late_.at(again.wait()).existed());
}

TEST_F(DrawsTest, AnAskThatIsWithdrawnGetsNoTrial) {
  AskedBefore();
  const std::size_t before = study().trials.size();
  const Reply first = Do(AskTrial{"s", {}, {}, /*call=*/7});
  const Reply second = Do(AskTrial{"s", {}, {}, /*call=*/8});
  EXPECT_TRUE(Do(WithdrawAsk{7}).status.ok());
  ASSERT_TRUE(late_.contains(first.wait()));
  EXPECT_EQ(late_.at(first.wait()).status.code(), absl::StatusCode::kCancelled);
  AnswerFirst();
  ASSERT_TRUE(late_.contains(second.wait()));
  EXPECT_TRUE(late_.at(second.wait()).status.ok()) << late_.at(second.wait()).status;
  EXPECT_TRUE(asked_.empty());
  EXPECT_EQ(study().trials.size(), before + 1);
  Do(WithdrawAsk{8});
  EXPECT_TRUE(late_.at(second.wait()).status.ok()) << "it has been answered";
}

TEST_F(DrawsTest, WhatIsDrawnForAnAskThatIsWithdrawnIsForTheNext) {
  AskedBefore();
  const std::size_t before = study().trials.size();
  Do(AskTrial{"s", {}, {}, /*call=*/7});
  Do(WithdrawAsk{7});
  AnswerFirst();
  EXPECT_EQ(study().trials.size(), before);
  const Reply next = Ask();
  EXPECT_FALSE(next.later());
  EXPECT_TRUE(next.status.ok()) << next.status;
}

TEST_F(DrawsTest, SoManyAsksOfAStudyWaitAndNoMore) {
  AskedBefore();
  for (std::size_t i = 0; i < kMaxAsksOfStudy; ++i) {
    ASSERT_TRUE(Do(AskTrial{"s", {}, {}, static_cast<std::int64_t>(i + 1)}).later()) << i;
  }
  const Reply refused = Ask();
  EXPECT_EQ(refused.status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(
      refused.status.message(),
      "study \"s\": 512 of its asks wait for its sampler \"tpe\", the most that may; try again "
      "later");
  Do(WithdrawAsk{1});
  EXPECT_TRUE(Ask().later()) << "one has given its place back";
}

TEST_F(DrawsTest, WhoWaitsForADrawOfAStudyThatEndsIsToldSo) {
  AskedBefore();
  const Reply reply = Ask();
  Do(StopStudy{study().spec.name});
  AnswerFirst();
  ASSERT_TRUE(late_.contains(reply.wait()));
  EXPECT_THAT(std::string(late_.at(reply.wait()).status.message()), HasSubstr("\"s\""));
  EXPECT_FALSE(late_.at(reply.wait()).status.ok());
}

TEST_F(DrawsTest, WhatWasAskedForBeforeAStopIsOfUseAfterIt) {
  AskedBefore();
  const Reply reply = Ask();
  Do(StopStudy{"s"});
  Do(ResumeStudy{.name = "s"});
  AnswerFirst();
  ASSERT_TRUE(late_.contains(reply.wait()));
  EXPECT_TRUE(late_.at(reply.wait()).status.ok());
}

TEST_F(DrawsTest, WhoWaitsForAStudyThatIsDeletedGetsNoTrialOfItsNamesake) {
  AskedBefore();
  const Reply reply = Ask();
  const DrawMade made = Made(*asked_.front());
  asked_.clear();
  Do(DeleteStudy{study().id});
  AskedBefore();
  const std::size_t before = core_.state().trials.size();
  Do(made);
  ASSERT_TRUE(late_.contains(reply.wait()));
  EXPECT_EQ(late_.at(reply.wait()).status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(core_.state().trials.size(), before);
}

TEST_F(DrawsTest, WhoWaitsForAStudyThatIsRenamedGetsItsTrial) {
  AskedBefore();
  const Reply reply = Ask();
  Do(RenameStudy{study().id, "other"});
  AnswerFirst();
  ASSERT_TRUE(late_.contains(reply.wait()));
  EXPECT_TRUE(late_.at(reply.wait()).status.ok()) << late_.at(reply.wait()).status;
}

// A trial that its client made itself has taken the number.
TEST_F(DrawsTest, ADrawIsForTheTrialOfItsNumberAlone) {
  AskedBefore();
  const Reply reply = Ask();
  const std::int64_t number = asked_.front()->trial_number;
  Do(CreateTrial{study().id, nullptr});
  AnswerFirst();
  EXPECT_FALSE(late_.contains(reply.wait()));
  ASSERT_EQ(asked_.size(), 1U);
  EXPECT_EQ(asked_.front()->trial_number, number + 1);
  AnswerFirst();
  EXPECT_TRUE(late_.contains(reply.wait()));
}

TEST_F(DrawsTest, NothingThatIsDrawnQuicklyWaits) {
  StudySpec spec = Slow(StudyKind::kByClients);
  spec.sampler = {"tpe", {}};
  ASSERT_TRUE(Do(CreateStudy{spec, false}).status.ok());
  for (int i = 0; i < kTrialsBefore; ++i) {
    ASSERT_FALSE(Ask().later());
  }
}

}  // namespace
}  // namespace espalier
