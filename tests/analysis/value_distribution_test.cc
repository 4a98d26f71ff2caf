#include "tuner/analysis/value_distribution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace espalier {
namespace {

std::vector<TrialCopy> Complete(const std::vector<double>& values) {
  std::vector<TrialCopy> trials;
  for (const double value : values) {
    TrialCopy trial;
    trial.state = TrialState::kComplete;
    trial.values = {value, -value};
    trials.push_back(trial);
  }
  return trials;
}

TEST(ValueDistribution, SaysWhichShareHasAtMostAValue) {
  std::vector<TrialCopy> trials = Complete({3, 1, NAN, 1, 7, INFINITY, 2});
  trials.back().state = TrialState::kPruned;
  const std::vector<ValueShare> points = ValueDistribution(trials, 0, 100);
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points[0].value, 1);
  EXPECT_EQ(points[0].share, 0.5);
  EXPECT_EQ(points[1].value, 3);
  EXPECT_EQ(points[1].share, 0.75);
  EXPECT_EQ(points[2].value, 7);
  EXPECT_EQ(points[2].share, 1);
  EXPECT_EQ(ValueDistribution(trials, 1, 100).front().value, -7);
  EXPECT_TRUE(ValueDistribution(trials, 2, 100).empty()) << "there are two objectives";
}

TEST(ValueDistribution, KeepsItsEndsWhereItIsCut) {
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) values.push_back(i);
  const std::vector<ValueShare> points = ValueDistribution(Complete(values), 0, 11);
  ASSERT_EQ(points.size(), 11u);
  EXPECT_EQ(points.front().value, 0);
  EXPECT_EQ(points.back().value, 999);
  EXPECT_EQ(points.back().share, 1);
  for (std::size_t i = 1; i < points.size(); ++i) {
    EXPECT_NEAR(points[i].share - points[i - 1].share, 0.1, 0.002);
  }
}

}  // namespace
}  // namespace espalier
