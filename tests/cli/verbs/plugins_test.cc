// `tuner plugins`: every row of every table, for people and for programs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/verbs/run_tuner.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class Plugins : public ::testing::Test {
 protected:
  std::string List(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"plugins"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = RunTuner(arguments, directory_.path());
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    return outcome.output;
  }

  TemporaryDirectory directory_;
};

// What JSON says of an option; null where there is none.
Json OptionIn(const Json& kind, const std::string& plugin, const std::string& option) {
  for (const Json& row : kind) {
    if (row["name"] != plugin) continue;
    for (const Json& known : row["options"]) {
      if (known["name"] == option) return known;
    }
  }
  return {};
}

TEST_F(Plugins, AreListedWithDefaultMeaningAndRangeOfEachOption) {
  const std::string text = List();
  EXPECT_THAT(text, HasSubstr("Pruners: \"pruner\" in a study file\n  none "));
  EXPECT_THAT(text, HasSubstr("\n  asha                      ends a trial that is not among"));
  EXPECT_THAT(text, HasSubstr("\n    min_steps=1               first rung: a whole number >= 1\n"));
  EXPECT_THAT(text, HasSubstr(": a number > 0 and < 1\n"));
  EXPECT_THAT(
      text,
      HasSubstr("\n    group=false               models the parameters of an option together, "
                "too: true or false\n"));
  EXPECT_THAT(text, HasSubstr("\n    multivariate=             models parameters together; "));
  for (const char* kind :
       {"Samplers: ", "Terminators: ", "Policies: ", "Pool-size rules: ", "Engines: "}) {
    EXPECT_THAT(text, HasSubstr(kind));
  }
}

TEST_F(Plugins, AreListedAsJsonWithRangesOfJsonSchema) {
  const Json json = Json::parse(List({"--json"}));
  EXPECT_EQ(OptionIn(json["samplers"], "grid", "points"),
            Json::parse(R"({"name": "points", "type": "integer", "default": 5, "minimum": 1,
                            "maximum": 1000,
                            "meaning": "values of each continuous parameter, equally probable"})"));
  EXPECT_EQ(OptionIn(json["samplers"], "tpe", "ordered"),
            Json::parse(R"({"name": "ordered", "type": "boolean", "default": true,
                            "meaning": "choices of numbers in order are ordered; else names"})"));
  EXPECT_FALSE(OptionIn(json["samplers"], "tpe", "multivariate").contains("default"));
  EXPECT_EQ(OptionIn(json["pruners"], "threshold", "upper"),
            Json::parse(R"({"name": "upper", "type": "number",
                            "meaning": "a value above this ends the trial"})"));
  EXPECT_EQ(OptionIn(json["terminators"], "stagnation", "trials")["default"], 30);
  EXPECT_EQ(OptionIn(json["terminators"], "regret", "error")["exclusiveMinimum"], 0);
  EXPECT_EQ(OptionIn(json["terminators"], "emmr", "threshold_ratio")["default"], 0.01);
  const Json threshold = OptionIn(json["pruners"], "promise", "threshold");
  EXPECT_EQ(threshold["exclusiveMinimum"], 0);
  EXPECT_EQ(threshold["exclusiveMaximum"], 1);
  EXPECT_EQ(threshold["default"], 0.3);
  const Json horizon = OptionIn(json["policies"], "promise_goodput", "horizon_s");
  EXPECT_EQ(horizon["minimum"], 0);
  EXPECT_FALSE(horizon.contains("maximum"));
  EXPECT_FALSE(OptionIn(json["pool_size_rules"], "utility_price", "min_utility").is_null());
  for (const auto& [kind, rows] : json.items()) EXPECT_FALSE(rows.empty()) << kind;
}

TEST_F(Plugins, AreShownByName) {
  EXPECT_THAT(List({"asha"}),
              ::testing::StartsWith("Pruners: \"pruner\" in a study file\n  asha "));
  const Json json = Json::parse(List({"none", "--json"}));
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json["pruners"][0]["name"], "none");
  EXPECT_EQ(json["terminators"][0]["name"], "none");
  const Outcome outcome = RunTuner({"plugins", "magic"}, directory_.path());
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("plug-in \"magic\" is unknown; known are "));
}

}  // namespace
}  // namespace espalier
