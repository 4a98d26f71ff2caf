#include "search_spaces/search_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "absl/strings/str_cat.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

std::string SpaceErrorOf(const std::string& json) {
  return std::string(SearchSpace::FromJson(json).status().message());
}

// A space of one parameter "x".
std::string One(const std::string& type, const std::string& value) {
  return absl::StrCat(R"({"x": {"_type": ")", type, R"(", "_value": )", value, "}}");
}

TEST(SearchSpace, KeepsTheOrderOfTheFile) {
  const auto space = SearchSpace::FromJson(R"({
    "z": {"_type": "choice", "_value": [1, 2.0, "a", true]},
    "a": {"_type": "randint", "_value": [1, 4], "_default": 2}})");
  ASSERT_TRUE(space.ok()) << space.status();
  Random random(1);
  const Parameters parameters = space->Sample(random);
  EXPECT_EQ(parameters[0].name, "z");
  EXPECT_EQ(parameters[1].name, "a");
  EXPECT_EQ(space->Cardinality(), 12u);
  EXPECT_EQ(space->Describe(), "z: choice of 1, 2, a, true\na: randint 1 to 3\n");
}

TEST(SearchSpace, PrintsWhatItParses) {
  const std::string json = R"({
    "a": {"_type": "choice", "_value": [1, 2.5, "a", false]},
    "b": {"_type": "randint", "_value": [-3, 4]},
    "c": {"_type": "uniform", "_value": [0.1, 4.0]},
    "d": {"_type": "quniform", "_value": [0.0, 4.0, 0.5]},
    "e": {"_type": "loguniform", "_value": [1e-5, 4.0]},
    "f": {"_type": "qloguniform", "_value": [1.0, 4.0, 0.5]},
    "g": {"_type": "normal", "_value": [0.0, 4.0]},
    "h": {"_type": "qnormal", "_value": [0.0, 4.0, 0.5]},
    "i": {"_type": "lognormal", "_value": [0.0, 4.0]},
    "j": {"_type": "qlognormal", "_value": [0.0, 4.0, 0.5]}})";
  const auto space = SearchSpace::FromJson(json);
  ASSERT_TRUE(space.ok()) << space.status();
  const auto again = SearchSpace::FromJson(space->ToJson());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->ToJson(), space->ToJson());
  EXPECT_FALSE(space->Cardinality().has_value());
  Random one(9);
  Random two(9);
  EXPECT_EQ(space->Sample(one), again->Sample(two));
}

// Whatever the machine, compiler and C library: who gets other values has found a fault.
TEST(SearchSpace, ASeedGivesTheseValuesEverywhere) {
  const auto space = SearchSpace::FromJson(R"({
    "c": {"_type": "choice", "_value": ["a", "b", "c"]},
    "i": {"_type": "randint", "_value": [0, 1000]},
    "u": {"_type": "uniform", "_value": [-1, 4]},
    "q": {"_type": "quniform", "_value": [0, 4, 0.1]},
    "l": {"_type": "loguniform", "_value": [1e-5, 4]},
    "ql": {"_type": "qloguniform", "_value": [1, 400, 0.5]},
    "n": {"_type": "normal", "_value": [1, 4]},
    "qn": {"_type": "qnormal", "_value": [0, 4, 0.5]},
    "ln": {"_type": "lognormal", "_value": [0, 4]},
    "qln": {"_type": "qlognormal", "_value": [3, 1, 0.5]}})");
  ASSERT_TRUE(space.ok()) << space.status();
  Random random(7);
  EXPECT_EQ(ToJson(space->Sample(random)),
            R"({"c":"a","i":804,"u":3.503803403034417,"q":2.3000000000000003,)"
            R"("l":0.0034245746571116356,"ql":4.5,"n":0.6783340208429827,"qn":-2.0,)"
            R"("ln":0.011962954711267786,"qln":16.0})");
  EXPECT_EQ(ToJson(space->Sample(random)),
            R"({"c":"b","i":516,"u":3.590097925730662,"q":3.5,"l":0.692185913985482,)"
            R"("ql":26.5,"n":5.692231429974151,"qn":-2.0,"ln":3.362510743233197,"qln":40.5})");
}

struct Refusal {
  std::string json;
  std::string message;
};

TEST(SearchSpace, NamesParameterValueAndRemedyOfEachError) {
  const Refusal refusals[] = {
      {One("loguniform", "[0, 1]"), "search space \"x\": loguniform needs low > 0, got 0"},
      {One("choice", "[]"), "search space \"x\": choice needs at least one option, got []"},
      {One("quniform", "[0, 1, 0]"), "search space \"x\": quniform needs q > 0, got 0"},
      {One("quniform", "[0, 1, -1]"), "needs q > 0, got -1"},
      {One("quniform", "[0, 1, 1e-300]"),
       "quniform needs a q by which there are at most 2^53 steps"},
      {One("uniform", "[2, 1]"), "uniform needs high > low, got low 2 and high 1"},
      {One("uniform", "[1, 1]"), "uniform needs high > low, got low 1 and high 1"},
      {One("uniform", "[-1e308, 1e308]"), "uniform needs high - low that a double can hold"},
      {One("randint", "[3, 3]"), "randint needs high > low, got low 3 and high 3"},
      {One("randint", "[0, 2.5]"), "randint needs integers of 64 bits, got 2.5 in [0,2.5]"},
      {One("randint", "[0, 5.0]"), "randint needs integers of 64 bits, got 5.0"},
      {One("randint", "[0]"), "randint needs 2 values [low, high), got [0]"},
      {One("uniform", "[0, 1, 2]"), "uniform needs 2 values [low, high], got [0,1,2]"},
      {One("quniform", "[0, 1]"), "quniform needs 3 values [low, high, q], got [0,1]"},
      {One("uniform", R"([0, "1"])"), "uniform needs numbers [low, high], got \"1\" in"},
      {One("uniform", "[false, true]"), "uniform needs numbers"},
      {One("normal", "[0, 0]"), "normal needs sigma > 0, got 0"},
      {One("lognormal", "[0, -1]"), "lognormal needs sigma > 0, got -1"},
      {One("choice", "[1, null]"), "choice: values are numbers, strings or booleans, got null"},
      {One("choice", "[[1]]"), "got [1]"},
      {One("choice", R"([{"a": 1}])"), "needs a \"_name\", got {\"a\":1}"},
      {One("choice", R"([{"_name": "a"}, 1])"),
       "each must be an object with one, got 1 (/x/_value/1,"},
      {One("choice", R"([1, {"_name": "a"}])"),
       "each must be an object with one, got 1 (/x/_value/0,"},
      {One("choice", R"([{"_name": 1}])"), "\"_name\" must be a text, got 1 (/x/_value/0/_name,"},
      {One("choice", R"([{"_name": ""}])"), "options whose \"_name\" is a text that is not empty"},
      {One("choice", R"([{"_name": "a"}, {"_name": "a"}])"),
       "options of different \"_name\", got \"a\" (/x/_value/1, line 1)"},
      {One("choice", R"([{"_name": "a", "p": {"_type": "quniform", "_value": [0, 1, 0]}}])"),
       "search space \"x/a/p\": quniform needs q > 0, got 0 (/x/_value/0/p/_value/2, line 1)"},
      {One("choice", R"([{"_name": "a", "": {"_type": "uniform", "_value": [0, 1]}}])"),
       "a parameter needs a name that is not empty"},
      {One("choice", R"([{"_name": "a", "p": 5}])"), "search space \"x/a/p\": expected an object"},
      {One("choice", "[1, 1.0]"), "choice needs different options, each once, got 1"},
      {One("choice", "5"), "\"_value\" of a choice must be a list, got 5"},
      {One("qrandint", "[0, 1]"),
       "unknown \"_type\" \"qrandint\": NNI has none; give the integers as a choice"},
      {One("foo", "[0, 1]"), "unknown \"_type\" \"foo\"; known: choice, randint, uniform,"},
      {One("mutable_layer", "{}"), "\"mutable_layer\" describes a neural architecture search"},
      {One("layer_choice", "[]"), "not a hyperparameter"},
      {One("input_choice", "[]"), "not a hyperparameter"},
      {R"({"x": 5})", "search space \"x\": expected an object"},
      {R"({"x": {"_value": [1]}})", "search space \"x\" has no \"_type\""},
      {R"({"x": {"_type": "choice"}})", "search space \"x\" has no \"_value\""},
      {R"({"x": {"_type": 5, "_value": [1]}})", "\"_type\" must be one of choice"},
      {R"({"x": 1, "x": 2})", "key \"x\" appears twice in one object (/x, line 1)"},
      {R"({"_name": {"_type": "choice", "_value": [1]}})",
       "\"_name\" is the key of an option's name"},
      {R"({"": {"_type": "choice", "_value": [1]}})", "needs a name that is not empty"},
      {"{}", "search space is empty; it needs at least one parameter"},
      {"[1]", "search space: expected a JSON object of parameters by name, got [1]"},
      {"{\n  \"x\": ,\n}", "search space: malformed JSON at line 2, column 8: "},
      {One("uniform", "[0, NaN]"), "malformed JSON at line 1"},
      {One("uniform", "[0, 1e999]"), "1e999"},
      {"", "malformed JSON at line 1"},
  };
  for (const auto& [json, message] : refusals) {
    EXPECT_THAT(SpaceErrorOf(json), HasSubstr(message)) << json;
  }
}

TEST(SearchSpace, RefusesNumbersThatAreNotFinite) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto message = [](Distribution d) {
    return std::string(SearchSpace::Make({{"x", std::move(d)}}).status().message());
  };
  EXPECT_THAT(message(Uniform{0, inf}), HasSubstr("uniform needs finite numbers, got inf"));
  EXPECT_THAT(message(Normal{0, std::numeric_limits<double>::quiet_NaN()}),
              HasSubstr("normal needs finite numbers, got nan"));
  EXPECT_THAT(message(Choice{{ParameterValue(inf)}}), HasSubstr("finite"));
}

TEST(SearchSpace, HoldsItsLimitsAndNoMore) {
  const auto named = [](std::size_t bytes) {
    return SearchSpace::Make({{std::string(bytes, 'a'), Uniform{0, 1}}});
  };
  EXPECT_TRUE(named(kMaxParameterNameBytes).ok());
  EXPECT_FALSE(named(kMaxParameterNameBytes + 1).ok());
  const auto sized = [](std::size_t count) {
    std::vector<SearchSpace::Dimension> dimensions;
    for (std::size_t i = 0; i < count; ++i) {
      dimensions.push_back({std::to_string(i), Uniform{0, 1}});
    }
    return SearchSpace::Make(std::move(dimensions));
  };
  EXPECT_TRUE(sized(kMaxParameters).ok());
  EXPECT_FALSE(sized(kMaxParameters + 1).ok());
  const auto choosing = [](std::size_t count) {
    Choice choice;
    for (std::size_t i = 0; i < count; ++i)
      choice.options.emplace_back(static_cast<std::int64_t>(i));
    return SearchSpace::Make({{"x", std::move(choice)}});
  };
  EXPECT_TRUE(choosing(kMaxOptions).ok());
  EXPECT_FALSE(choosing(kMaxOptions + 1).ok());
}

TEST(SearchSpace, ValidateNamesWhatIsWrong) {
  const auto space = SearchSpace::FromJson(One("uniform", "[0, 1]"));
  ASSERT_TRUE(space.ok());
  const auto message = [&](const Parameters& p) {
    return std::string(space->Validate(p).message());
  };
  EXPECT_EQ(message({{"x", 0.5}}), "");
  EXPECT_EQ(message({}), "parameter \"x\" is missing; it is uniform 0 to 1");
  EXPECT_EQ(message({{"x", 2.0}}),
            "parameter \"x\" is 2, outside its search space: uniform 0 to 1");
  EXPECT_THAT(message({{"x", 0.5}, {"y", 1.0}}), HasSubstr("\"y\" is not in the search space"));
  EXPECT_THAT(message({{"x", 0.5}, {"x", 0.5}}), HasSubstr("\"x\" is given twice"));
}

TEST(SearchSpace, CardinalityOfHugeSpacesSaturates) {
  const auto space = SearchSpace::Make(
      {{"a", RandInt{std::numeric_limits<std::int64_t>::min(), 9}}, {"b", RandInt{0, 1000}}});
  ASSERT_TRUE(space.ok()) << space.status();
  EXPECT_EQ(space->Cardinality(), std::numeric_limits<std::uint64_t>::max());
}

}  // namespace
}  // namespace espalier
