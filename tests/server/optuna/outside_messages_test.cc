// What a process that asks Optuna is told, and what its answers are taken for.

#include "tuner/server/optuna/outside_messages.h"

#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/json/parse_json.h"
#include "gmock/gmock.h"

namespace espalier {
namespace {

using testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class OutsideMessagesTest : public testing::Test {
 protected:
  OutsideMessagesTest() {
    request_.sampler = *MakeSampler(
        "optuna", {{"sampler", "TPESampler"},
                   {"options", OptionValue::OfObject(R"json({"n_startup_trials":3})json")}});
    request_.space = *SearchSpace::FromJson(R"json({
        "u": {"_type": "uniform", "_value": [-1, 1]}, "q": {"_type": "quniform", "_value": [0, 1, 0.25]},
        "odd": {"_type": "quniform", "_value": [0.1, 1, 0.25]},
        "l": {"_type": "loguniform", "_value": [1e-3, 1]}, "n": {"_type": "normal", "_value": [2, 3]},
        "i": {"_type": "randint", "_value": [2, 9]},
        "c": {"_type": "choice", "_value": [{"_name": "a", "in": {"_type": "randint", "_value": [0, 4]}},
                                            {"_name": "b"}]}})json");
    request_.trial_number = 3;
    request_.seed = (std::uint64_t{1} << 40) + 5;
  }

  const Parameters& With(double u) {
    return parameters_.emplace_back(Parameters{{"u", u},
                                               {"q", 0.75},
                                               {"odd", 0.5},
                                               {"l", 0.1},
                                               {"n", 2.0},
                                               {"i", std::int64_t{4}},
                                               {"c", std::string("b")}});
  }
  Observation Ended(std::int64_t number, double value, bool pruned = false) {
    return {number, &With(0.5), value, pruned, 9};
  }
  nlohmann::json Message(ToldHistory& told) {
    const std::string text = told.MessageOf(request_, 10);
    EXPECT_TRUE(text.ends_with("}\n")) << text;
    return ParseJson(text);
  }
  std::string ErrorOf(const std::string& answer) {
    return std::string(ReadSuggestion(request_, answer).status().message());
  }

  std::deque<Parameters> parameters_;
  DrawRequest request_;
};

TEST_F(OutsideMessagesTest, TheSpaceIsToldAsOptunaHasIt) {
  const auto message = ParseJson(StudyMessage(request_));
  EXPECT_EQ(message["sampler"], "TPESampler");
  EXPECT_EQ(message["options"], ParseJson(R"json({"n_startup_trials":3})json"));
  EXPECT_EQ(message["directions"], ParseJson(R"json(["MINIMIZE"])json"));
  const auto& space = message["space"];
  EXPECT_EQ(space[0], ParseJson(R"json({"name":"u","kind":"float","low":-1.0,"high":1.0})json"));
  EXPECT_EQ(space[1]["step"], 0.25);
  EXPECT_FALSE(space[2].contains("step")) << "its bounds are no multiples";
  EXPECT_EQ(space[3]["kind"], "log");
  EXPECT_EQ(space[4]["low"], 1e-9) << "a bell curve is on the interval of its probabilities";
  EXPECT_EQ(space[5], ParseJson(R"json({"name":"i","kind":"whole","low":2,"high":8})json"));
  EXPECT_EQ(space[6]["options"], ParseJson(R"json(["a","b"])json"));
  EXPECT_EQ(space[7]["if"], ParseJson("[6,0]"));
}

TEST_F(OutsideMessagesTest, WhatHasEndedIsToldOnceAndAllElseEachTime) {
  request_.ended = {Ended(0, 1.5), Ended(1, 2, true)};
  request_.held_numbers = {1};
  request_.running = {&With(0.25)};
  request_.running_numbers = {2};
  request_.stored.trials[0] = std::make_shared<const std::string>(R"({"a":1})");
  request_.stored.study = R"({"b":2})";
  ToldHistory told;
  auto first = Message(told);
  auto& bell = first["ended"][0][5][4][1];
  EXPECT_NEAR(bell.get<double>(), 0.5, 1e-9);
  bell = 0.5;
  EXPECT_EQ(first["ended"], ParseJson(R"json([[0,"COMPLETE",[1.5],9,[],
                [[0,0.5],[1,0.75],[2,0.5],[3,0.1],[4,0.5],[5,4.0],[6,1.0]]]])json"));
  EXPECT_EQ(first["held"][0][1], "PRUNED");
  EXPECT_EQ(first["running"][0][0], 2);
  EXPECT_EQ(first["stored"], ParseJson(R"json([[0,"{\"a\":1}"]])json"));
  EXPECT_EQ(first["stored_of_study"], R"({"b":2})");
  EXPECT_EQ(first["seed"], 5) << "NumPy's are of 32 bits";
  const auto second = Message(told);
  EXPECT_TRUE(second["ended"].empty() && second["stored"].empty());
  EXPECT_FALSE(second.contains("stored_of_study"));
  EXPECT_EQ(second["held"], first["held"]);
  EXPECT_EQ(second["running"], first["running"]);
  request_.held_numbers.clear();
  EXPECT_EQ(Message(told)["ended"], first["held"]);
}

TEST_F(OutsideMessagesTest, ACheckIsOfASuggestionAndConstraints) {
  const auto message = ParseJson(CheckMessage(request_, 10, true));
  EXPECT_EQ(message["constrained"], true);
  EXPECT_EQ(message["number"], 3);
  EXPECT_EQ(message["ended"], ParseJson("[]"));
  EXPECT_EQ(ParseJson(CheckMessage(request_, 10, false))["constrained"], false);
}

TEST_F(OutsideMessagesTest, WhatIsNoValueOrTooGoodToBeTrueHasFailed) {
  request_.ended = {Ended(0, std::nan("")), Ended(1, -kInfinity), Ended(2, std::nan(""), true)};
  request_.ended.push_back({3, &parameters_.emplace_back(Parameters{{"u", 7.0}}), 1.0, false, 0});
  ToldHistory told;
  const auto message = Message(told);
  for (const auto& trial : message["ended"]) EXPECT_EQ(trial[1], "FAIL") << trial;
}

TEST_F(OutsideMessagesTest, AnAnswerIsParametersOfTheSpace) {
  const auto drawn = ReadSuggestion(
      request_,
      R"json({"parameters": [[0,0.5],[1,0.5],[2,0.6],[3,0.01],[4,0.5],[5,8.0],[6,0.0],[7,3.0]],
              "stored": "{}", "stored_of_study": "{\"k\":1}"})json");
  ASSERT_TRUE(drawn.ok()) << drawn.status();
  const Parameters expected = {{"u", 0.5},
                               {"q", 0.5},
                               {"odd", 0.5},
                               {"l", 0.01},
                               {"n", 2.0},
                               {"i", std::int64_t{8}},
                               {"c", std::string("a")},
                               {"c/a/in", std::int64_t{3}}};
  EXPECT_EQ(*drawn->parameters, expected);
  EXPECT_EQ(drawn->stored_of_trial, "{}");
  EXPECT_EQ(drawn->stored_of_study, R"({"k":1})");
}

TEST_F(OutsideMessagesTest, AnAnswerThatMakesNoSenseIsAnError) {
  EXPECT_EQ(ErrorOf(R"({"refused": "it is unknown"})"), "it is unknown");
  EXPECT_THAT(ErrorOf("what?"), HasSubstr("no JSON"));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("without parameters"));
  EXPECT_THAT(ErrorOf(R"({"parameters": [[99, 1.0]]})"), HasSubstr("no parameters"));
  EXPECT_THAT(ErrorOf(R"({"parameters": [["u", 1.0]]})"), HasSubstr("no parameters"));
  EXPECT_THAT(ErrorOf(R"({"parameters": [[0, 7.0]]})"), HasSubstr("it has suggested"));
}

}  // namespace
}  // namespace espalier
