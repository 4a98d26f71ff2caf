#include "adapters/optuna/messages.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <limits>

namespace espalier::optuna_storage {
namespace {

TEST(LocalTime, ComesBackToTheMicrosecond) {
  for (const std::int64_t us : {std::int64_t{1}, std::int64_t{1'700'000'000'123'456},
                                std::int64_t{1'750'000'000'000'000}, std::int64_t{-5'000'001}}) {
    const std::string text = ToLocalTime(Time{us});
    EXPECT_EQ(text.size(), std::string("2026-11-21 13:05:00.123456").size()) << text;
    const absl::StatusOr<Time> back = FromLocalTime(text);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->us, us) << text;
  }
  EXPECT_EQ(ToLocalTime(Time{}), "");
  EXPECT_EQ(*FromLocalTime(""), Time{});
}

TEST(LocalTime, IsThatOfThisHost) {
  std::tm local{};
  const std::time_t seconds = 1'700'000'000;
  localtime_r(&seconds, &local);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &local);
  EXPECT_EQ(ToLocalTime(Time{seconds * 1'000'000}), std::string(text) + ".000000");
}

TEST(LocalTime, WhatIsNoTimeIsNamed) {
  for (const char* text : {"yesterday", "2026-11-21", "2026-13-01 00:00:00.000000"}) {
    const absl::Status status = FromLocalTime(text).status();
    EXPECT_TRUE(absl::IsUnknown(status)) << text;
    EXPECT_NE(status.message().find(text), absl::string_view::npos);
  }
}

TEST(Texts, ThatNestTooDeepAreRefusedByName) {
  for (const std::size_t depth : {std::size_t{65}, std::size_t{100'000}}) {
    const std::string deep = std::string(depth, '[') + std::string(depth, ']');
    const absl::Status attribute = CheckAttribute("notes", deep);
    EXPECT_TRUE(absl::IsUnknown(attribute));
    EXPECT_EQ(attribute.message(), "attribute \"notes\": values nest deeper than 64 levels");
    EXPECT_EQ(MakeSuggestion("x", R"({"type": "categorical", "choices": [)" + deep + "]}")
                  .status()
                  .message(),
              "parameter \"x\": values nest deeper than 64 levels");
  }
  EXPECT_TRUE(CheckAttribute("notes", std::string(64, '[') + std::string(64, ']')).ok());
}

TEST(Trials, OfThePoolAppearWithTheParametersOfTheirSpace) {
  Study study;
  study.spec.space = *SearchSpace::FromJson(
      R"({"lr": {"_type": "loguniform", "_value": [1e-5, 1]},
          "rule": {"_type": "choice", "_value": ["linear", "adascale"]}})");
  Trial trial;
  trial.id = TrialId(4);
  trial.state = TrialState::kPaused;
  trial.parameters = {{"lr", 0.5}, {"rule", std::string("adascale")}};
  trial.values = {{1, 0.25, 0, {}, 0}};
  const optuna::Trial message = ToMessage(trial, study);
  EXPECT_EQ(message.state(), optuna::RUNNING);
  EXPECT_EQ(message.params().at("lr"), 0.5);
  EXPECT_EQ(message.params().at("rule"), 1);
  EXPECT_NE(message.distributions().at("rule").find("adascale"), std::string::npos);
  EXPECT_EQ(message.intermediate_values().at(1), 0.25);
  EXPECT_EQ(message.values_size(), 0);
}

TEST(Trials, OfAQueueWithoutASpaceHaveDistributionsOfTheirOwnValues) {
  const Study study;
  Trial trial;
  trial.id = TrialId(4);
  trial.parameters = {{"lr", 0.5}, {"rule", std::string("adascale")}};
  const optuna::Trial message = ToMessage(trial, study);
  EXPECT_EQ(message.params().at("lr"), 0.5);
  EXPECT_NE(message.distributions().at("lr").find("FloatDistribution"), std::string::npos);
  EXPECT_EQ(message.params().at("rule"), 0);
  EXPECT_NE(message.distributions().at("rule").find("[\"adascale\"]"), std::string::npos);
}

TEST(Trials, OfThePoolAreCompleteForOptunaOnlyWithAValue) {
  Study study;
  study.spec.has_metric = false;
  Trial trial;
  trial.id = TrialId(4);
  trial.state = TrialState::kComplete;
  EXPECT_EQ(ToMessage(trial, study).state(), optuna::FAIL);
  trial.value = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(ToMessage(trial, study).state(), optuna::FAIL);
  EXPECT_EQ(ToMessage(trial, study).values_size(), 0);
  trial.value = std::numeric_limits<double>::infinity();
  EXPECT_EQ(ToMessage(trial, study).state(), optuna::COMPLETE);
  EXPECT_EQ(ToMessage(trial, study).values_size(), 1);
}

TEST(Trials, ThatClientsEndedStayAsTheyAre) {
  Study study;
  study.spec.kind = StudyKind::kByClients;
  Trial trial;
  trial.id = TrialId(4);
  trial.state = TrialState::kComplete;
  EXPECT_EQ(ToMessage(trial, study).state(), optuna::COMPLETE);
  trial.value = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(ToMessage(trial, study).state(), optuna::COMPLETE);
  EXPECT_EQ(ToMessage(trial, study).values_size(), 1);
}

}  // namespace
}  // namespace espalier::optuna_storage
