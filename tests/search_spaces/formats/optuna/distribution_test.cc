#include "search_spaces/formats/optuna/distribution.h"

#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"

namespace espalier {
namespace {

OptunaDistribution Parse(const std::string& json) {
  absl::StatusOr<OptunaDistribution> distribution = ParseOptunaDistribution(json);
  EXPECT_TRUE(distribution.ok()) << json << ": " << distribution.status();
  return distribution.ok() ? *distribution : OptunaDistribution{};
}

std::string Choices(const std::string& choices) {
  return R"({"name": "CategoricalDistribution", "attributes": {"choices": )" + choices + "}}";
}

std::string Float(const std::string& attributes) {
  return R"({"name": "FloatDistribution", "attributes": {)" + attributes + "}}";
}

TEST(OptunaDistribution, ReadsWhatOptunaWrites) {
  const OptunaDistribution f =
      Parse(Float(R"("step": null, "low": -1.0, "high": 1.0, "log": false)"));
  EXPECT_EQ(f.type, OptunaDistribution::Type::kFloat);
  EXPECT_EQ(f.low, -1);
  EXPECT_EQ(f.high, 1);
  EXPECT_FALSE(f.log);
  EXPECT_EQ(f.step, std::nullopt);
  const OptunaDistribution i = Parse(
      R"({"name": "IntDistribution", "attributes": {"log": true, "step": 1, "low": 1, "high": 8}})");
  EXPECT_EQ(i.type, OptunaDistribution::Type::kInt);
  EXPECT_TRUE(i.log);
  EXPECT_EQ(i.step, 1);
  const OptunaDistribution c = Parse(Choices(R"(["a", null, true, 2, 3.5, NaN, "\u00e9", [1]])"));
  EXPECT_EQ(c.choices.size(), 8u);
  EXPECT_EQ(Parse(R"({"type": "float", "low": 0, "high": 1})").name, "FloatDistribution");
  EXPECT_TRUE(
      Parse(R"({"name": "LogUniformDistribution", "attributes": {"low": 1, "high": 8}})").log);
  EXPECT_EQ(Parse(R"({"name": "DiscreteUniformDistribution",
                      "attributes": {"low": 0, "high": 1, "q": 0.5}})")
                .step,
            0.5);
}

TEST(OptunaDistribution, ReadsChoicesWithLoneSurrogates) {
  // As Python writes the name of a file that is not UTF-8.
  const OptunaDistribution lone = Parse(Choices(R"(["a\udcff", "\ud800", "\ud83d\ude00"])"));
  EXPECT_EQ(lone.choices,
            (std::vector<std::string>{"\"a\uFFFD\"", "\"\uFFFD\"", "\"\U0001F600\""}));
  EXPECT_EQ(OptunaValue(lone, 0), ParameterValue(std::string("a\uFFFD")));
  EXPECT_EQ(Parse(Choices(R"(["\\ud800"])")).choices.front(), R"("\\ud800")");
}

TEST(OptunaDistribution, RefusesWhatItCannotRead) {
  for (const char* json :
       {"", "{bad", "[]", "{}", R"({"name": "FloatDistribution"})",
        R"({"name": "NormalDistribution", "attributes": {}})",
        R"({"name": "FloatDistribution", "attributes": {"low": "a", "high": 1}})",
        R"({"name": "CategoricalDistribution", "attributes": {"choices": 3}})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseOptunaDistribution(json).status())) << json;
  }
}

TEST(OptunaDistribution, TheKindIsThatOfPythonsComparison) {
  const auto kind = [](const std::string& json) { return Parse(json).kind; };
  EXPECT_EQ(kind(Float(R"("low": 0, "high": 1, "log": false)")),
            kind(Float(R"("low": -5, "high": 9, "log": false, "step": 0.5)")));
  EXPECT_NE(kind(Float(R"("low": 1, "high": 2, "log": false)")),
            kind(Float(R"("low": 1, "high": 2, "log": true)")));
  EXPECT_EQ(kind(Choices("[1, NaN]")), kind(Choices("[1.0, NaN]")));
  EXPECT_EQ(kind(Choices("[1, 0]")), kind(Choices("[true, false]")));
  EXPECT_NE(kind(Choices(R"([1])")), kind(Choices(R"(["1"])")));
  EXPECT_NE(kind(Choices(R"(["a", "b"])")), kind(Choices(R"(["b", "a"])")));
  EXPECT_NE(kind(Choices("[null]")), kind(Choices("[0]")));
  EXPECT_NE(kind(Choices("[[1, 2]]")), kind(Choices("[[12]]")));
}

// What is stored may have any depth: it neither ends the service nor is lost.
TEST(OptunaDistribution, ReadsChoicesOfAnyDepth) {
  for (const int depth : {65, 100'000}) {
    const auto n = static_cast<std::size_t>(depth);
    const std::string list = std::string(n, '[') + std::string(n, ']');
    std::string object;
    for (int i = 0; i < depth; ++i) object += "{\"k\":";
    object += "1" + std::string(n, '}');
    const OptunaDistribution deep = Parse(Choices(absl::StrCat("[", list, ", ", object, ", 1]")));
    ASSERT_EQ(deep.choices.size(), 3u);
    EXPECT_TRUE(deep.choices[0] == list);
    EXPECT_TRUE(deep.choices[1] == object);
    EXPECT_TRUE(OptunaValue(deep, 0) == ParameterValue(list));
    EXPECT_NE(deep.kind, Parse(Choices(absl::StrCat("[[", list, "], ", object, ", 1]"))).kind);
    EXPECT_TRUE(CheckPythonJson(object).ok());
  }
}

TEST(OptunaDistribution, GivesTheValueThatTheProgramGot) {
  const OptunaDistribution c = Parse(Choices(R"(["a", null, true, 2, 3.5])"));
  EXPECT_EQ(OptunaValue(c, 0), ParameterValue(std::string("a")));
  EXPECT_EQ(OptunaValue(c, 1), ParameterValue(std::string("null")));
  EXPECT_EQ(OptunaValue(c, 2), ParameterValue(true));
  EXPECT_EQ(OptunaValue(c, 3), ParameterValue(std::int64_t{2}));
  EXPECT_EQ(OptunaValue(c, 4), ParameterValue(3.5));
  EXPECT_EQ(OptunaValue(c, 5), ParameterValue(5.0)) << "no choice: the number itself";
  EXPECT_EQ(OptunaValue(c, -1), ParameterValue(-1.0));
  const OptunaDistribution i = Parse(
      R"({"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 1, "high": 8}})");
  EXPECT_EQ(OptunaValue(i, 4), ParameterValue(std::int64_t{4}));
}

// What a study of ours shows to Optuna must be something that Optuna accepts.
TEST(OptunaDistribution, OwnDistributionsBecomeOptunasWithTheirValue) {
  Random random(7);
  const Distribution own[] = {Choice{{std::string("a"), std::int64_t{2}, 0.5, true}},
                              RandInt{-3, 5},
                              Uniform{0.25, 3},
                              QUniform{0, 10, 2.5},
                              LogUniform{1e-5, 0.1},
                              QLogUniform{1, 100, 3},
                              Normal{1, 2},
                              QNormal{0, 3, 0.5},
                              LogNormal{0, 1},
                              QLogNormal{0, 1, 0.5}};
  for (const Distribution& distribution : own) {
    SCOPED_TRACE(Describe(distribution));
    for (int i = 0; i < 200; ++i) {
      const ParameterValue value = Draw(distribution, random);
      const OptunaDistribution optuna = Parse(ToOptunaJson(distribution, value));
      const double stored = ToOptunaStored(distribution, value);
      EXPECT_TRUE(SameValue(OptunaValue(optuna, stored), value)) << ToJson(value);
      if (optuna.type == OptunaDistribution::Type::kCategorical) continue;
      EXPECT_LE(optuna.low, stored);
      EXPECT_GE(optuna.high, stored);
      EXPECT_TRUE(!optuna.log || optuna.low > 0);
    }
  }
}

TEST(PythonJson, TakesWhatPythonWritesAndNothingElse) {
  for (const char* text :
       {"NaN", "-Infinity", "[Infinity, 1e300, 123456789012345678901234567890]", "\"\\ud800\"",
        "\"\\uDC00x\"", "{\"a\": {\"b\": [null, true]}}", " 1 ", "\"\\\\ud800\""}) {
    EXPECT_TRUE(CheckPythonJson(text).ok()) << text << ": " << CheckPythonJson(text);
  }
  for (const char* text :
       {"", "{bad", "nan", "'a'", "[1,]", "1 2", "\"a", "\"\\ud80\"", "{1: 2}"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckPythonJson(text))) << text;
  }
  const std::string deep(1'000'000, '[');
  EXPECT_FALSE(CheckPythonJson(deep).ok()) << "and the stack holds";
}

TEST(PythonJson, TakesIntegersOfAnyLength) {
  const std::string digits(1000, '9');
  const std::string round = "1" + std::string(1000, '0');
  for (const std::string& text :
       {digits, "-" + digits, absl::StrCat("[", round, ", -", round, ",1]"),
        absl::StrCat("{\"a\": ", digits, ", \"", digits, "\\\"1\": 0.5e-3}"), digits + ".5"}) {
    EXPECT_TRUE(CheckPythonJson(text).ok()) << text << ": " << CheckPythonJson(text);
  }
  for (const std::string& text : {"0" + digits, digits + " 1", digits + "x", "[" + digits + " 1]",
                                  "--" + digits, "+" + digits, digits + "-", digits + "."}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckPythonJson(text))) << text;
  }
  EXPECT_EQ(CheckPythonJson("[" + digits + ", x]").message(),
            "not JSON at byte 1003: Invalid value.");
}

}  // namespace
}  // namespace espalier
