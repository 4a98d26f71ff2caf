#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "search_spaces/search_space.h"
#include "trial_runner/elastic/scaling_rules.h"

namespace espalier {
namespace {

std::string ReadText(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::filesystem::path> Files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(ESPALIER_CATALOG)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  return files;
}

SearchSpace Read(const std::filesystem::path& path) {
  auto space = SearchSpace::FromJson(ReadText(path));
  EXPECT_TRUE(space.ok()) << path << space.status();
  return space.ok() ? *std::move(space) : SearchSpace();
}

TEST(Catalog, EverySpaceYieldsValidParametersAndIsExplained) {
  const std::string page = ReadText(std::string(ESPALIER_CATALOG) + "/README.md");
  for (const auto& path : Files()) {
    SCOPED_TRACE(path);
    const SearchSpace space = Read(path);
    Random random(1);
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(space.Validate(space.Sample(random)).ok());
    EXPECT_THAT(page, ::testing::HasSubstr("](" + path.filename().string() + ")"));
  }
  EXPECT_EQ(Files().size(), 6u);
}

TEST(Catalog, ScalingRulesAreThoseOfTheTrialRunner) {
  int rules = 0;
  for (const auto& path : Files()) {
    const SearchSpace space = Read(path);
    for (std::size_t i = 0; i < space.dimensions().size(); ++i) {
      if (space.OwnName(i) != "scaling_rule") continue;
      for (const ParameterValue& rule :
           std::get<Choice>(space.dimensions()[i].distribution).options) {
        EXPECT_TRUE(FindScalingRule(std::get<std::string>(rule)).ok()) << path << ToDisplay(rule);
        ++rules;
      }
    }
  }
  EXPECT_EQ(rules, 11);
}

// NNI's PBT tuner knows no nested choices.
TEST(Catalog, PopulationBasedTrainingHasNoConditions) {
  const SearchSpace space = Read(std::string(ESPALIER_CATALOG) + "/population_based_training.json");
  for (const auto& dimension : space.dimensions()) EXPECT_FALSE(dimension.condition);
}

}  // namespace
}  // namespace espalier
