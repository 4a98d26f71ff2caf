#include "search_spaces/formats/optuna/trial_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "search_spaces/formats/optuna/distribution.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

// What a program reads of the only parameter.
ParameterValue ReadBack(const OptunaParameters& parameters, const Parameters& given) {
  const std::vector<OptunaParameter> all = parameters.Of(given);
  EXPECT_EQ(all.size(), 1u);
  const auto distribution = ParseOptunaDistribution(all.at(0).distribution);
  EXPECT_TRUE(distribution.ok()) << all.at(0).distribution << ": " << distribution.status();
  return OptunaValue(*distribution, all.at(0).stored);
}

TEST(OptunaParameters, HaveTheDistributionsOfTheirSpace) {
  const SearchSpace space = *SearchSpace::FromJson(
      R"({"x": {"_type": "uniform", "_value": [0, 2]},
          "rule": {"_type": "choice", "_value": ["a", "b"]}})");
  OptunaParameters parameters(space);
  const Parameters given = {{"x", 0.5}, {"rule", std::string("b")}};
  parameters.Observe(given);
  const std::vector<OptunaParameter> all = parameters.Of(given);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "x");
  EXPECT_THAT(all[0].distribution, HasSubstr("\"low\": 0.0, \"high\": 2.0"));
  EXPECT_EQ(all[0].stored, 0.5);
  EXPECT_THAT(all[1].distribution, HasSubstr("[\"a\", \"b\"]"));
  EXPECT_EQ(all[1].stored, 1);
}

TEST(OptunaParameters, ShareADistributionOfWhatWasObserved) {
  const SearchSpace none;
  OptunaParameters parameters(none);
  const Parameters one = {{"lr", 0.5}, {"n", std::int64_t{3}}, {"rule", std::string("a")}};
  const Parameters other = {{"lr", std::int64_t{2}}, {"n", std::int64_t{-1}}, {"rule", true}};
  parameters.Observe(one);
  parameters.Observe(other);
  const std::vector<OptunaParameter> a = parameters.Of(one);
  const std::vector<OptunaParameter> b = parameters.Of(other);
  ASSERT_EQ(a.size(), 3u);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].distribution, b[i].distribution);
  const OptunaDistribution lr = *ParseOptunaDistribution(a[0].distribution);
  EXPECT_EQ(lr.type, OptunaDistribution::Type::kFloat) << "one of its values has a fraction";
  EXPECT_EQ(lr.low, 0.5);
  EXPECT_EQ(lr.high, 2);
  EXPECT_EQ(b[0].stored, 2);
  const OptunaDistribution n = *ParseOptunaDistribution(a[1].distribution);
  EXPECT_EQ(n.type, OptunaDistribution::Type::kInt);
  EXPECT_EQ(n.low, -1);
  EXPECT_EQ(n.high, 3);
  EXPECT_THAT(a[2].distribution, HasSubstr("[\"a\", true]"));
  EXPECT_EQ(a[2].stored, 0);
  EXPECT_EQ(b[2].stored, 1);
}

TEST(OptunaParameters, EveryValueComesBackAlsoAlone) {
  const SearchSpace none;
  OptunaParameters observed(none);
  const std::vector<ParameterValue> values = {true,
                                              std::int64_t{1},
                                              1.0,
                                              0.25,
                                              std::string("1"),
                                              std::string("null"),
                                              std::numeric_limits<std::int64_t>::min()};
  for (const ParameterValue& value : values) observed.Observe({{"p", value}});
  for (const ParameterValue& value : values) {
    EXPECT_TRUE(SameValue(ReadBack(observed, {{"p", value}}), value)) << ToJson(value);
    EXPECT_TRUE(SameValue(ReadBack(OptunaParameters(none), {{"p", value}}), value))
        << ToJson(value);
  }
}

TEST(OptunaParameters, TheLargestIntegerHasADistributionToo) {
  const SearchSpace none;
  OptunaParameters parameters(none);
  const Parameters largest = {{"p", std::numeric_limits<std::int64_t>::max()}};
  parameters.Observe(largest);
  const OptunaDistribution of = *ParseOptunaDistribution(parameters.Of(largest)[0].distribution);
  EXPECT_EQ(of.type, OptunaDistribution::Type::kFloat);
  EXPECT_EQ(of.low, of.high);
}

TEST(OptunaParameters, TooManyTextsHaveADistributionEach) {
  const SearchSpace none;
  OptunaParameters parameters(none);
  const auto text = [](std::size_t i) {
    return Parameters{{"p", ParameterValue(absl::StrCat("text ", i))}};
  };
  for (std::size_t i = 0; i < kMaxObservedChoices; ++i) parameters.Observe(text(i));
  EXPECT_EQ(parameters.Of(text(0))[0].distribution, parameters.Of(text(9))[0].distribution);
  EXPECT_EQ(parameters.Of(text(9))[0].stored, 9);
  parameters.Observe(text(kMaxObservedChoices));
  EXPECT_THAT(parameters.Of(text(9))[0].distribution, HasSubstr("[\"text 9\"]"));
  EXPECT_EQ(parameters.Of(text(9))[0].stored, 0);
}

}  // namespace
}  // namespace espalier
