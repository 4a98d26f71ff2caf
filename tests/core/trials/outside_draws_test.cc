// Draws of samplers that are asked outside: the test answers for them.

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/core/core_fixture.h"
#include "tuner/core/samplers/draw.h"
#include "tuner/core/state/private_attributes.h"

namespace espalier {
namespace {

using testing::HasSubstr;

StudySpec AskedOutside(StudySpec spec) {
  spec.kind = StudyKind::kByClients;
  spec.command.clear();
  spec.metric = "v";
  spec.space = *SearchSpace::FromJson(R"({"x": {"_type": "uniform", "_value": [0, 1]}})");
  spec.sampler = {"optuna", {}};
  return spec;
}

class OutsideDrawsTest : public CoreTest {
 protected:
  OutsideDrawsTest() : CoreTest({.plan_aside = true, .asks_outside = true}) {
    EXPECT_TRUE(Do(CreateStudy{AskedOutside(Spec(/*trials=*/0)), false}).status.ok());
  }

  Reply Do(const Event& event) { return DoIn(core_, event); }
  Reply DoIn(Core& core, const Event& event) {
    now_ = After(now_, 0.01);
    StepResult result = core.Step(now_, event);
    for (const auto& draw : result.draws) asked_.push_back(draw);
    for (const auto& [wait, reply] : result.late) late_[wait] = reply;
    return result.reply;
  }
  std::shared_ptr<const DrawRequest> Asked() {
    EXPECT_EQ(asked_.size(), 1U);
    const auto request = asked_.front();
    asked_.clear();
    return request;
  }
  void Answer(const DrawRequest& request, std::string of_trial, std::string of_study) {
    Drawn drawn{.parameters = Parameters{{"x", 0.25}}, .random = Random(1)};
    drawn.stored_of_trial = std::move(of_trial);
    drawn.stored_of_study = std::move(of_study);
    Do(DrawMade{request.study, request.number, std::make_shared<const Drawn>(std::move(drawn))});
  }

  std::deque<std::shared_ptr<const DrawRequest>> asked_;
  std::map<LaterReply, Reply> late_;
};

TEST_F(OutsideDrawsTest, AFailureStopsTheStudyAndIsWhatClientsAreTold) {
  const Reply first = Do(AskTrial{"s", {}, {}});
  const Reply second = Do(AskTrial{"s", {}, {}});
  const auto request = Asked();
  Do(DrawMade{request->study, request->number, nullptr, "it has died"});
  for (const Reply& waits : {first, second}) {
    ASSERT_TRUE(late_.contains(waits.wait()));
    EXPECT_THAT(std::string(late_.at(waits.wait()).status.message()), HasSubstr("it has died"));
  }
  EXPECT_EQ(study().state, StudyState::kStopped);
  EXPECT_EQ(study().reason, "it has died");
  EXPECT_TRUE(study().trials.empty());
  ASSERT_TRUE(Do(ResumeStudy{.name = "s"}).status.ok());
  const Reply third = Do(AskTrial{"s", {}, {}});
  Answer(*Asked(), "", "");
  EXPECT_TRUE(late_.at(third.wait()).status.ok()) << late_.at(third.wait()).status;
}

TEST_F(OutsideDrawsTest, WhatNobodyMadeIsAskedForAgain) {
  const Reply reply = Do(AskTrial{"s", {}, {}});
  const auto request = Asked();
  Do(DrawMade{request->study, request->number, nullptr, {}});
  EXPECT_FALSE(late_.contains(reply.wait()));
  const auto again = Asked();
  EXPECT_EQ(again->trial_number, request->trial_number);
  EXPECT_EQ(again->seed, request->seed);
  Answer(*again, "", "");
  EXPECT_TRUE(late_.at(reply.wait()).status.ok());
}

TEST_F(OutsideDrawsTest, WhatASamplerStoresComesWithTheNextRequestAlsoAfterARestart) {
  const Reply first = Do(AskTrial{"s", {}, {}});
  Answer(*Asked(), R"({"generation": 1})", R"({"points": 1})");
  const Reply second = Do(AskTrial{"s", {}, {}});
  Answer(*Asked(), "", "");
  Do(TellEnd{late_.at(second.wait()).trial(), TrialState::kComplete, {1.0}});
  Core restarted(TunerState(core_.state()), {.plan_aside = true, .asks_outside = true});
  for (Core* core : {&core_, &restarted}) {
    DoIn(*core, AskTrial{"s", {}, {}});
    const auto request = Asked();
    EXPECT_EQ(request->stored.study, R"({"points": 1})");
    ASSERT_EQ(request->stored.trials.size(), 1U);
    EXPECT_EQ(*request->stored.trials.at(0), R"({"generation": 1})");
    EXPECT_EQ(request->running_numbers, std::vector<std::int64_t>{0});
    EXPECT_EQ(request->running.size(), 1U);
    EXPECT_EQ(request->ended.size(), 1U);
  }
}

TEST_F(OutsideDrawsTest, WhatItStoresIsNoClientsToSee) {
  EXPECT_TRUE(IsPrivateAttribute(kSamplerState));
  const Reply first = Do(AskTrial{"s", {}, {}});
  Answer(*Asked(), "{}", "{}");
  const Trial& trial = core_.state().trials.at(late_.at(first.wait()).trial());
  EXPECT_EQ(trial.attributes.system.count(kSamplerState), 1U);
  EXPECT_EQ(WithoutPrivate(trial.attributes).system.count(kSamplerState), 0U);
}

TEST(OutsideDraws, ACoreThatCannotAskOutsideTakesNoSuchStudy) {
  Core core(TunerState{}, CoreOptions{});
  StudySpec spec = AskedOutside(StudySpec{});
  spec.name = "s";
  const Reply reply = core.Step(Time{1'000'000}, CreateStudy{std::move(spec), false}).reply;
  EXPECT_THAT(std::string(reply.status.message()),
              HasSubstr("which --optuna-python of `tuner serve`"));
}

}  // namespace
}  // namespace espalier
