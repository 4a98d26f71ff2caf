// Choices whose options bring parameters of their own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "search_spaces/combinations.h"
#include "search_spaces/search_space.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kSpace[] = R"({
  "first": {"_type": "randint", "_value": [0, 3]},
  "n": {"_type": "choice", "_value": [
    {"_name": "A",
     "p": {"_type": "choice", "_value": [0.1, 0.2]},
     "m": {"_type": "choice", "_value": [
       {"_name": "X", "z": {"_type": "choice", "_value": ["s", "t", "u"]}},
       {"_name": "Y"}]}},
    {"_name": "B"}]},
  "last": {"_type": "choice", "_value": [true, false]}})";

SearchSpace Space(const std::string& json = kSpace) {
  auto space = SearchSpace::FromJson(json);
  EXPECT_TRUE(space.ok()) << space.status();
  return *std::move(space);
}

std::string ErrorOf(const std::string& json) {
  return std::string(SearchSpace::FromJson(json).status().message());
}

Parameters Flat(const std::string& json) {
  auto parameters = ParametersFromJson(json);
  EXPECT_TRUE(parameters.ok()) << parameters.status();
  return *std::move(parameters);
}

TEST(NestedChoice, IsAListOfDimensionsDepthFirst) {
  const SearchSpace space = Space();
  std::vector<std::string> names;
  std::vector<std::string> own;
  for (std::size_t i = 0; i < space.dimensions().size(); ++i) {
    names.push_back(space.dimensions()[i].name);
    own.emplace_back(space.OwnName(i));
  }
  EXPECT_THAT(names, ElementsAre("first", "n", "n/A/p", "n/A/m", "n/A/m/X/z", "last"));
  EXPECT_THAT(own, ElementsAre("first", "n", "p", "m", "z", "last"));
  EXPECT_EQ(Space(space.ToJson()).ToJson(), space.ToJson());
}

TEST(NestedChoice, DrawsOnlyWhatIsActive) {
  const SearchSpace space = Space();
  Random random(3);
  bool saw[3] = {};
  for (int i = 0; i < 200; ++i) {
    const Parameters parameters = space.Sample(random);
    ASSERT_TRUE(space.Validate(parameters).ok()) << space.Validate(parameters);
    const bool in_a = *Find(parameters, "n") == ParameterValue("A");
    const ParameterValue* m = Find(parameters, "n/A/m");
    EXPECT_EQ(Find(parameters, "n/A/p") != nullptr, in_a);
    EXPECT_EQ(m != nullptr, in_a);
    const bool in_x = m != nullptr && *m == ParameterValue("X");
    EXPECT_EQ(Find(parameters, "n/A/m/X/z") != nullptr, in_x);
    saw[in_x ? 2 : in_a ? 1 : 0] = true;
    EXPECT_EQ(Flat(space.NestedJson(parameters)), parameters);
  }
  EXPECT_THAT(saw, ElementsAre(true, true, true));
}

TEST(NestedChoice, ReachesTrialsAsNniWritesIt) {
  const SearchSpace space = Space();
  const Parameters parameters = {
      {"n", "A"},  {"n/A/p", 0.2}, {"n/A/m", "Y"}, {"last", false}, {"first", std::int64_t{1}},
      {"own", 5.0}};
  EXPECT_EQ(space.NestedJson(parameters),
            R"({"first":1,"n":{"_name":"A","p":0.2,"m":{"_name":"Y"}},"last":false,"own":5.0})");
  EXPECT_EQ(space.NestedJson({{"n", "B"}}), R"({"n":{"_name":"B"}})");
}

TEST(NestedChoice, IsFlattenedWhereverItsNameStands) {
  EXPECT_EQ(
      Flat(R"({"n": {"p": 0.5, "_name": "A", "m": {"_name": "X", "z": 1}}, "s": "t"})"),
      (Parameters{
          {"n", "A"}, {"n/A/p", 0.5}, {"n/A/m", "X"}, {"n/A/m/X/z", std::int64_t{1}}, {"s", "t"}}));
  const auto message = [](const char* json) {
    return std::string(ParametersFromJson(json).status().message());
  };
  EXPECT_THAT(message(R"({"n": {"p": 1}})"), HasSubstr("\"n\" is an object, so it needs a text"));
  EXPECT_THAT(message(R"({"n": {"_name": 3}})"), HasSubstr("\"_name\""));
  EXPECT_THAT(message(R"({"n": {"_name": "A", "p": [1]}})"), HasSubstr("\"n/A/p\": values are"));
  EXPECT_THAT(message(R"({"n": {"_name": "A", "p": 1}, "n/A/p": 2})"),
              HasSubstr("\"n/A/p\" is given twice"));
}

TEST(NestedChoice, ValidationKnowsWhatDependsOnWhat) {
  const SearchSpace space = Space();
  const auto message = [&](const char* json) {
    return std::string(space.Validate(Flat(json)).message());
  };
  EXPECT_EQ(message(R"({"first": 0, "n": "B", "last": true})"), "");
  EXPECT_EQ(
      message(R"({"first": 0, "n": {"_name": "A", "p": 0.1, "m": {"_name": "Y"}}, "last": true})"),
      "");
  EXPECT_THAT(message(R"({"first": 0, "n": {"_name": "A", "p": 0.1}, "last": true})"),
              HasSubstr("\"n/A/m\" is missing; it is choice of X, Y"));
  EXPECT_THAT(message(R"({"first": 0, "n": "B", "n/A/p": 0.1, "last": true})"),
              HasSubstr("\"n/A/p\" belongs to option \"A\" of \"n\", which is B"));
  EXPECT_THAT(message(R"({"first": 0, "n": "C", "last": true})"), HasSubstr("outside"));
  EXPECT_EQ(space.ValidateSome(Flat(R"({"n": {"_name": "A", "p": 0.2}})")).message(), "");
  EXPECT_THAT(std::string(space.ValidateSome({{"n/A/m/X/z", "s"}}).message()),
              HasSubstr("belongs to option \"A\" of \"n\", which is missing"));
}

TEST(NestedChoice, CountsActiveCombinations) {
  // 3 * (2 * (3 + 1) + 1) * 2
  const SearchSpace space = Space();
  EXPECT_EQ(space.Cardinality(), 54u);
  const Combinations combinations(space, {3, 2, 2, 2, 3, 2});
  EXPECT_EQ(combinations.count(), 54u);
  for (std::uint64_t number = 0; number < 54; ++number) {
    const auto indices = combinations.At(number);
    ASSERT_TRUE(indices);
    EXPECT_EQ(combinations.NumberOf(*indices), number);
    EXPECT_EQ((*indices)[2].has_value(), (*indices)[1] == 0u);
    EXPECT_EQ((*indices)[4].has_value(), (*indices)[3] == 0u && (*indices)[1] == 0u);
  }
  EXPECT_FALSE(combinations.At(54));
}

TEST(NestedChoice, RefusesNamesThatCouldBeMistaken) {
  const std::string nested = R"("n": {"_type": "choice", "_value": [
      {"_name": "A", "p": {"_type": "uniform", "_value": [0, 1]}}]})";
  EXPECT_THAT(ErrorOf("{" + nested + R"(, "n/A/p": {"_type": "uniform", "_value": [0, 1]}})"),
              HasSubstr("this name appears twice (/n~1A~1p, line 2)"));
  EXPECT_THAT(ErrorOf("{" + nested + R"(, "n/A/q": {"_type": "uniform", "_value": [0, 1]}})"),
              HasSubstr("this name is that of a parameter of option \"A\" of choice \"n\""));
  EXPECT_THAT(ErrorOf(R"({"n/A/q": {"_type": "uniform", "_value": [0, 1]}, )" + nested + "}"),
              HasSubstr("rename one of them"));
  // A plain choice's options are no objects, but in a flat list nobody could tell.
  EXPECT_THAT(ErrorOf(R"({"n": {"_type": "choice", "_value": ["A"]},
                          "n/A/q": {"_type": "uniform", "_value": [0, 1]}})"),
              HasSubstr("rename one of them"));
  EXPECT_EQ(ErrorOf(R"({"conv/lr": {"_type": "uniform", "_value": [0, 1]}})"), "");
  EXPECT_EQ(ErrorOf("{" + nested + R"(, "n/p": {"_type": "uniform", "_value": [0, 1]}})"), "");
}

TEST(CheckVariables, RefusesTwoParametersThatOneTrialHasInOneVariable) {
  const auto message = [](const std::string& json) {
    return std::string(Space(json).CheckVariables().message());
  };
  const std::string uniform = R"({"_type": "uniform", "_value": [0, 1]})";
  EXPECT_EQ(message("{\"x-y\": " + uniform + ", \"z\": " + uniform + ", \"X_Y\": " + uniform + "}"),
            "\"x-y\" and \"X_Y\" would both be ESPALIER_PARAM_X_Y: rename one");
  const std::string options =
      "{\"_name\": \"a-b\", \"p\": " + uniform + "}, {\"_name\": \"a_b\", \"p\": " + uniform + "}";
  const std::string nested = "\"n\": {\"_type\": \"choice\", \"_value\": [" + options + "]}";
  EXPECT_EQ(message("{" + nested + "}"), "") << "a trial has one of the two";
  EXPECT_EQ(message("{" + nested + ", \"n_a_b_p\": " + uniform + "}"),
            "\"n/a-b/p\" and \"n_a_b_p\" would both be ESPALIER_PARAM_N_A_B_P: rename one");
  EXPECT_EQ(message("{\"\u03b1\": " + uniform + ", \"\u03b2\": " + uniform + "}"), "")
      << "programs read these from the file";
}

TEST(CheckVariables, RefusesATrialWithTwoParametersInOneVariable) {
  EXPECT_TRUE(
      CheckVariables(Parameters{{"lr", 0.1}, {"l", 0.1}, {"\u03b1", 1.0}, {"\u03b2", 1.0}}).ok());
  EXPECT_EQ(CheckVariables(Parameters{{"lr", 0.1}, {"x", 0.1}, {"LR", 0.2}}).message(),
            "\"lr\" and \"LR\" would both be ESPALIER_PARAM_LR: rename one");
}

TEST(NestedChoice, GoesAsDeepAsJsonMay) {
  std::string json = R"({"_type": "uniform", "_value": [0, 1]})";
  for (int depth = 0; depth < 18; ++depth) {
    json = absl::StrCat(R"({"_type": "choice", "_value": [{"_name": "o", "p": )", json, "}]}");
  }
  const SearchSpace space = Space(R"({"p": )" + json + "}");
  EXPECT_EQ(space.dimensions().size(), 19u);
  Random random(1);
  EXPECT_EQ(space.Sample(random).size(), 19u);
}

TEST(NestedChoice, MakeRefusesConditionsThatAreNone) {
  const auto message = [](SearchSpace::Condition condition, const char* name) {
    return std::string(
        SearchSpace::Make({{"n", Choice{{"A", "B"}, true}}, {name, Uniform{0, 1}, condition}})
            .status()
            .message());
  };
  EXPECT_EQ(message({0, 1}, "n/B/p"), "");
  EXPECT_THAT(message({0, 1}, "n/A/p"), HasSubstr("its name must start with \"n/B/\""));
  EXPECT_THAT(message({0, 2}, "n/B/p"), HasSubstr("its name must start with"));
  EXPECT_THAT(message({1, 0}, "n/B/p"), HasSubstr("comes before the choice that it depends on"));
}

}  // namespace
}  // namespace espalier
