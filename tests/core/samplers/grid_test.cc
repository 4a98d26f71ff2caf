#include <gtest/gtest.h>

#include <cmath>
#include <deque>

#include "tuner/core/samplers/sampler.h"

namespace espalier {
namespace {

std::vector<std::string> Everything(const std::string& json, const Options& options) {
  const SearchSpace space = *SearchSpace::FromJson(json);
  const std::unique_ptr<Sampler> grid = *MakeSampler("grid", options);
  std::vector<std::string> all;
  std::deque<Parameters> tried;
  std::vector<const Parameters*> running;
  Random random(0);
  for (std::int64_t number = 0;; ++number) {
    const auto suggestion =
        grid->Suggest({space, Direction::kMinimize, {}, running, number}, random);
    if (!suggestion) return all;
    all.push_back(ToJson(*suggestion));
    running.push_back(&tried.emplace_back(*suggestion));
  }
}

TEST(GridSampler, CountsThroughAllCombinationsLastParameterFastest) {
  const std::vector<std::string> expected = {R"({"a":"x","b":1})", R"({"a":"x","b":2})",
                                             R"({"a":"y","b":1})", R"({"a":"y","b":2})"};
  EXPECT_EQ(Everything(R"({"a": {"_type": "choice", "_value": ["x", "y"]},
                           "b": {"_type": "randint", "_value": [1, 3]}})",
                       {}),
            expected);
}

TEST(GridSampler, CountsOnlyCombinationsOfActiveParameters) {
  const std::vector<std::string> expected = {R"({"n":"A","n/A/p":0,"s":"x"})",
                                             R"({"n":"A","n/A/p":0,"s":"y"})",
                                             R"({"n":"A","n/A/p":1,"s":"x"})",
                                             R"({"n":"A","n/A/p":1,"s":"y"})",
                                             R"({"n":"B","s":"x"})",
                                             R"({"n":"B","s":"y"})",
                                             R"({"n":"C","n/C/u":0.5,"s":"x"})",
                                             R"({"n":"C","n/C/u":0.5,"s":"y"})"};
  EXPECT_EQ(Everything(R"({
    "n": {"_type": "choice", "_value": [
      {"_name": "A", "p": {"_type": "randint", "_value": [0, 2]}}, {"_name": "B"},
      {"_name": "C", "u": {"_type": "uniform", "_value": [0, 1]}}]},
    "s": {"_type": "choice", "_value": ["x", "y"]}})",
                       {{"points", 1}}),
            expected);
}

TEST(GridSampler, PutsPointsAtTheMiddlesOfEquallyProbableParts) {
  const std::vector<std::string> expected = {R"({"x":1.0})", R"({"x":3.0})"};
  EXPECT_EQ(Everything(R"({"x": {"_type": "uniform", "_value": [0, 4]}})", {{"points", 2}}),
            expected);
  EXPECT_EQ(Everything(R"({"x": {"_type": "uniform", "_value": [0, 4]}})", {}).size(), 5u);
}

TEST(GridSampler, SpacesLogScalesInTheLogarithm) {
  const SearchSpace space =
      *SearchSpace::FromJson(R"({"x": {"_type": "loguniform", "_value": [1e-4, 1]}})");
  const std::unique_ptr<Sampler> grid = *MakeSampler("grid", {{"points", 4}});
  Random random(0);
  for (std::int64_t i = 0; i < 4; ++i) {
    const auto suggestion = grid->Suggest({space, Direction::kMinimize, {}, {}, i}, random);
    ASSERT_TRUE(suggestion.has_value());
    const double x = std::get<double>((*suggestion)[0].value);
    EXPECT_NEAR(std::log10(x), -3.5 + static_cast<double>(i), 1e-9);
  }
}

// Of a grid of 0.5, 1.5, 2.5 and 3.5, the points that are left when these were tried.
std::vector<double> LeftAfter(const std::vector<double>& tried, std::int64_t number) {
  const SearchSpace space =
      *SearchSpace::FromJson(R"({"x": {"_type": "uniform", "_value": [0, 4]}})");
  const std::unique_ptr<Sampler> grid = *MakeSampler("grid", {{"points", 4}});
  std::deque<Parameters> parameters;
  std::vector<Observation> ended;
  for (const double x : tried) {
    ended.push_back({.parameters = &parameters.emplace_back(Parameters{{"x", x}})});
  }
  std::vector<const Parameters*> running;
  std::vector<double> left;
  Random random(0);
  for (;; ++number) {
    const auto suggestion =
        grid->Suggest({space, Direction::kMinimize, ended, running, number}, random);
    if (!suggestion) return left;
    left.push_back(std::get<double>(suggestion->front().value));
    running.push_back(&parameters.emplace_back(*suggestion));
  }
}

TEST(GridSampler, GivesEachPointThatIsLeftWhateverTheTrialsNumber) {
  EXPECT_EQ(LeftAfter({2.5}, 1), (std::vector<double>{1.5, 3.5, 0.5}));
  EXPECT_EQ(LeftAfter({0.5, 0.5, 3.5}, 3), (std::vector<double>{1.5, 2.5}));
  EXPECT_EQ(LeftAfter({}, 1002), (std::vector<double>{2.5, 3.5, 0.5, 1.5}));
}

TEST(GridSampler, WhatLiesBetweenItsPointsTakesNone) {
  EXPECT_EQ(LeftAfter({2.4, 9}, 2), (std::vector<double>{2.5, 3.5, 0.5, 1.5}));
}

TEST(GridSampler, CoarseStepsGiveEachValueOnce) {
  EXPECT_EQ(
      Everything(R"({"x": {"_type": "qnormal", "_value": [0, 1, 5]}})", {{"points", 9}}).size(),
      1u);
}

}  // namespace
}  // namespace espalier
