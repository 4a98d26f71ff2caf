#include "tuner/analysis/importance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace espalier {
namespace {

constexpr char kSpace[] = R"json({"lr": {"_type": "loguniform", "_value": [1e-4, 1]},
  "layers": {"_type": "choice", "_value": [2, 4, 8]}, "seed": {"_type": "uniform", "_value": [0, 1]}})json";

// A study of 60 complete trials whose value is made from the trial's parameters.
template <typename Value>
StudyCopy Complete(Direction direction, Value value) {
  StudyCopy study;
  study.head.spec.directions = {direction};
  study.head.spec.space = *SearchSpace::FromJson(kSpace);
  for (int i = 0; i < 60; ++i) {
    const double lr = std::pow(10, -4.0 * ((i * 7) % 60) / 59);
    const std::int64_t layers = std::int64_t{2} << (i % 3);
    const double seed = ((i * 23) % 60) / 59.0;
    TrialCopy trial;
    trial.number = i;
    trial.state = TrialState::kComplete;
    trial.parameters = {{"lr", lr}, {"layers", layers}, {"seed", seed}};
    trial.values = {value(lr, static_cast<double>(layers), seed)};
    study.trials.push_back(trial);
  }
  return study;
}

std::vector<Importance> Of(const StudyCopy& study) {
  DrawnParameters parameters(study);
  return Importances(study, parameters, 0);
}

TEST(Importance, WhatDecidesIsFirstAndAllTogetherAreOne) {
  const StudyCopy study = Complete(Direction::kMinimize, [](double lr, double, double seed) {
    return std::abs(std::log10(lr) + 2) + 0.01 * seed;
  });
  const std::vector<Importance> importances = Of(study);
  ASSERT_EQ(importances.size(), 3u);
  EXPECT_EQ(importances[0].name, "lr");
  EXPECT_EQ(importances[0].distribution, "FloatDistribution");
  EXPECT_GT(importances[0].importance, 0.7);
  double sum = 0;
  for (const Importance& one : importances) sum += one.importance;
  EXPECT_NEAR(sum, 1, 1e-9);
}

TEST(Importance, GoesByTheBestOfTheStudysDirection) {
  // The choice decides what is greatest, and not what is least.
  const auto value = [](double, double layers, double seed) { return layers == 8 ? 10 : seed; };
  const std::vector<Importance> most = Of(Complete(Direction::kMaximize, value));
  EXPECT_EQ(most[0].name, "layers");
  EXPECT_EQ(most[0].distribution, "CategoricalDistribution");
  const std::vector<Importance> least = Of(Complete(Direction::kMinimize, value));
  EXPECT_EQ(least[0].name, "seed");
}

TEST(Importance, NeedsTwoCompleteTrials) {
  StudyCopy study = Complete(Direction::kMinimize, [](double lr, double, double) { return lr; });
  for (std::size_t i = 1; i < study.trials.size(); ++i) {
    study.trials[i].state = TrialState::kPruned;
  }
  EXPECT_TRUE(Of(study).empty());
  study.trials[1].state = TrialState::kComplete;
  EXPECT_EQ(Of(study).size(), 3u);
}

}  // namespace
}  // namespace espalier
