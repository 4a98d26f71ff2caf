#include "search_spaces/parameter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tuner/base/random.h"

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

TEST(Parameter, RefusesDeepNesting) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_THAT(Message(ParameterValueFromJson(deep).status()), HasSubstr("nest deeper than 64"));
}

TEST(Parameter, ComparesNumbersAcrossTypesButNotBooleans) {
  EXPECT_TRUE(SameValue(ParameterValue(std::int64_t{16}), ParameterValue(16.0)));
  EXPECT_FALSE(SameValue(ParameterValue(true), ParameterValue(std::int64_t{1})));
}

}  // namespace
}  // namespace espalier
