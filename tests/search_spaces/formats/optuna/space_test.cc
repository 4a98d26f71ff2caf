#include "search_spaces/formats/optuna/space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

SearchSpace Space(const char* json) {
  auto space = SearchSpace::FromJson(json);
  EXPECT_TRUE(space.ok()) << space.status();
  return *std::move(space);
}

TEST(OptunaSpace, GoesThereAndBack) {
  const SearchSpace space = Space(R"({
    "c": {"_type": "choice", "_value": [1, 2.5, "a", true]},
    "i": {"_type": "randint", "_value": [-3, 8]},
    "u": {"_type": "uniform", "_value": [0.25, 4]},
    "q": {"_type": "quniform", "_value": [0, 0.6, 0.2]},
    "l": {"_type": "loguniform", "_value": [1e-5, 1]}})");
  const OptunaText optuna = ToOptuna(space);
  EXPECT_THAT(optuna.flaws, IsEmpty());
  EXPECT_THAT(optuna.notes, ElementsAre(HasSubstr("\"q\": NNI draws the two ends")));
  EXPECT_THAT(optuna.json, HasSubstr("IntDistribution"));
  EXPECT_TRUE(LooksLikeOptuna(optuna.json));
  EXPECT_FALSE(LooksLikeOptuna(space.ToJson()));
  const OptunaReading back = ReadOptunaSpace(optuna.json);
  ASSERT_TRUE(back.reading.status().ok()) << back.reading.status();
  EXPECT_EQ(back.reading.space.ToJson(), space.ToJson());
}

TEST(OptunaSpace, NamesEachParameterThatOptunaCannotExpress) {
  const OptunaText optuna = ToOptuna(Space(R"({
    "n": {"_type": "choice", "_value": [
      {"_name": "A", "p": {"_type": "uniform", "_value": [0, 1]}}]},
    "b": {"_type": "lognormal", "_value": [0, 1]},
    "q": {"_type": "quniform", "_value": [2, 10, 5]},
    "l": {"_type": "qloguniform", "_value": [1, 10, 1]},
    "u": {"_type": "uniform", "_value": [0, 1]}})"));
  EXPECT_EQ(optuna.json, "");
  EXPECT_THAT(
      optuna.flaws,
      ElementsAre(HasSubstr("\"n\" (choice of A): is a nested choice"),
                  HasSubstr("\"n/A/p\" (uniform 0 to 1): depends on a nested choice"),
                  HasSubstr("\"b\" (lognormal mu 0, sigma 1): Optuna has no normal distributions"),
                  HasSubstr("\"q\" (quniform 2 to 10 in steps of 5): Optuna's steps begin at low"),
                  HasSubstr("\"l\" (qloguniform 1 to 10 in steps of 1): Optuna has no steps")));
}

TEST(OptunaSpace, ReadsWhatOptunaWrites) {
  const OptunaReading read = ReadOptunaSpace(R"({
    "odd": {"name": "FloatDistribution", "attributes": {"step": 0.5, "low": 0.25, "high": 1.3, "log": false}},
    "even": {"name": "IntDistribution", "attributes": {"log": false, "step": 2, "low": 1, "high": 6}},
    "old": {"name": "DiscreteUniformDistribution", "attributes": {"low": 0, "high": 1, "q": 0.5}},
    "one": {"name": "FloatDistribution", "attributes": {"step": null, "low": 3.0, "high": 3.0, "log": false}},
    "short": {"type": "int", "low": 0, "high": 4}})");
  ASSERT_TRUE(read.reading.status().ok()) << read.reading.status();
  EXPECT_EQ(read.reading.space.Describe(),
            "odd: choice of 0.25, 0.75, 1.25\neven: choice of 1, 3, 5\n"
            "old: quniform 0 to 1 in steps of 0.5\none: choice of 3\nshort: randint 0 to 4\n");
}

TEST(OptunaSpace, NamesWhatHasNoEqualHere) {
  const OptunaReading read = ReadOptunaSpace(R"({
    "i": {"name": "IntDistribution", "attributes": {"log": true, "step": 1, "low": 1, "high": 100}},
    "c": {"name": "CategoricalDistribution", "attributes": {"choices": [1, null]}},

    "f": {"name": "FloatDistribution", "attributes": {"step": 1e-9, "low": 0.5e-9, "high": 1, "log": false}},
    "x": 5})");
  std::vector<std::string> texts;
  for (const SpaceFlaw& flaw : read.reading.flaws) texts.push_back(flaw.Text());
  EXPECT_THAT(texts, ElementsAre(HasSubstr("the nearest is qloguniform [1, 100, 1]"),
                                 HasSubstr("line 3, /c: search space \"c\": choice: "),
                                 StartsWith("line 5, /f: search space \"f\": needs a step"),
                                 HasSubstr("needs an object")));
}

}  // namespace
}  // namespace espalier
