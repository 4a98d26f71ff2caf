#include "search_spaces/parameter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/random.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(Parameter, KeepsTypesThroughJson) {
  const Parameters parameters = {
      {"z", ParameterValue(std::int64_t{5})},
      {"a", ParameterValue(5.0)},
      {"flag", ParameterValue(true)},
      {"text", ParameterValue(std::string("a \"b\" \xC3\xA9\n"))},
      {"least", ParameterValue(std::numeric_limits<std::int64_t>::min())}};
  const std::string json = ToJson(parameters);
  EXPECT_THAT(json, HasSubstr(R"({"z":5,"a":5.0,"flag":true,)"));
  const auto back = ParametersFromJson(json);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, parameters);
}

TEST(Parameter, KeepsEveryBitOfDoubles) {
  Random random(7);
  for (int i = 0; i < 2000; ++i) {
    const double x = random.Normal() * std::pow(10.0, random.Uniform(-300, 300));
    const auto back = ParameterValueFromJson(ToJson(ParameterValue(x)));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(std::get<double>(*back), x);
  }
}

TEST(Parameter, DisplaysFourDigits) {
  EXPECT_EQ(ToDisplay(ParameterValue(0.000123456)), "0.0001235");
  EXPECT_EQ(ToDisplay(ParameterValue(std::int64_t{1234567})), "1234567");
  EXPECT_EQ(ToDisplay(ParameterValue(std::string("sgd"))), "sgd");
  EXPECT_EQ(ToDisplay(ParameterValue(false)), "false");
}

TEST(Parameter, RefusesWhatIsNotFlat) {
  EXPECT_THAT(Message(ParametersFromJson(R"({"a": [1]})").status()),
              HasSubstr("parameter \"a\": values are numbers, strings or booleans, got [1]"));
  EXPECT_THAT(Message(ParametersFromJson(R"({"a": 1, "a": 2})").status()),
              HasSubstr("key \"a\" appears twice"));
  EXPECT_THAT(Message(ParametersFromJson("[]").status()), HasSubstr("expected a JSON object"));
  EXPECT_THAT(Message(ParameterValueFromJson("9223372036854775808").status()),
              HasSubstr("at most 9223372036854775807, got 9223372036854775808"));
  EXPECT_THAT(Message(ParameterValueFromJson("1e999").status()), HasSubstr("1e999"));
  EXPECT_FALSE(ParameterValueFromJson("null").ok());
}

TEST(Parameter, WhatIsNoValueMayBeItsText) {
  const auto parameters = ParametersOrTextsFromJson(
      R"({"none": null, "list": [1, "é"], "object": {"a": 1}, "x": 0.5, "big": 9223372036854775808,
          "n": {"_name": "A", "p": null}})");
  ASSERT_TRUE(parameters.ok()) << parameters.status();
  const auto text = [](const char* value) { return ParameterValue(std::string(value)); };
  EXPECT_EQ(*parameters, (Parameters{{"none", text("null")},
                                     {"list", text(R"([1,"\u00e9"])")},
                                     {"object", text(R"({"a":1})")},
                                     {"x", ParameterValue(0.5)},
                                     {"big", text("9223372036854775808")},
                                     {"n", text("A")},
                                     {"n/A/p", text("null")}}));
  EXPECT_THAT(Message(ParametersOrTextsFromJson("[]").status()),
              HasSubstr("expected a JSON object"));
  EXPECT_THAT(Message(ParametersOrTextsFromJson(R"({"a": null, "a": 2})").status()),
              HasSubstr("key \"a\" appears twice"));
}

TEST(Parameter, RefusesDeepNesting) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_THAT(Message(ParameterValueFromJson(deep).status()), HasSubstr("nest deeper than 64"));
}

TEST(Parameter, LimitsTheFlatFormOfNestedChoices) {
  std::string members = R"("_name": "o")";
  for (int i = 0; i < 600; ++i) absl::StrAppend(&members, ", \"k", i, "\": ", i);
  const std::string two = absl::StrCat("{\"a\": {", members, "}, \"b\": {", members, "}}");
  EXPECT_THAT(Message(ParametersFromJson(two).status()), HasSubstr("more than 1024"));
  EXPECT_TRUE(ParametersFromJson(absl::StrCat("{\"a\": {", members, "}}")).ok());

  std::string long_name = absl::StrCat(R"("_name": ")", std::string(20'000, 'x'), "\"");
  for (int i = 0; i < 100; ++i) absl::StrAppend(&long_name, ", \"k", i, "\": ", i);
  EXPECT_THAT(Message(ParametersFromJson(absl::StrCat("{\"a\": {", long_name, "}}")).status()),
              HasSubstr("more than 1048576 bytes of JSON"));
}

TEST(Parameter, WhatIsTakenCanBeReadAgain) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  Parameters parameters = {{"a", 0.5}, {"text", std::string()}};
  const std::string filling(kMost - ToJson(parameters).size(), 't');
  parameters.back().value = filling;
  ASSERT_EQ(ToJson(parameters).size(), kMost);
  const auto read = ParametersFromJson(ToJson(parameters));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, parameters);
  // Written as 1000000000.0.
  EXPECT_FALSE(ParametersFromJson(absl::StrCat(R"({"a":1e9,"text":")", filling, R"("})")).ok());
}

TEST(Parameter, ReadsRecordsOfAnySize) {
  Parameters many;
  for (int i = 0; i < 2000; ++i) many.push_back({absl::StrCat("p", i), std::int64_t{i}});
  for (const Parameters& kept : {many, Parameters{{"text", std::string(2 << 20, 't')}}}) {
    EXPECT_FALSE(ParametersFromJson(ToJson(kept)).ok());
    const auto read = ParametersFromRecord(ToJson(kept));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, kept);
  }
}

TEST(Parameter, ComparesNumbersAcrossTypesButNotBooleans) {
  EXPECT_TRUE(SameValue(ParameterValue(std::int64_t{16}), ParameterValue(16.0)));
  EXPECT_FALSE(SameValue(ParameterValue(true), ParameterValue(std::int64_t{1})));
}

}  // namespace
}  // namespace espalier
