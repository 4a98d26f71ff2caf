#include "tuner/core/pruners/signed_rank.h"

#include <vector>

#include "gtest/gtest.h"

namespace espalier {
namespace {

// As scipy 1.17.1 has them: wilcoxon(d, alternative="greater", zero_method="zsplit").pvalue.
TEST(SignedRankProbability, IsExactForFewDifferencesOfUnlikeSizes) {
  EXPECT_EQ(SignedRankProbability({1}), 0.5);
  EXPECT_EQ(SignedRankProbability({1, 2, 3}), 0.125);
  EXPECT_EQ(SignedRankProbability({-1, -2, -3}), 1);
  EXPECT_EQ(SignedRankProbability({1, -2, 3}), 0.375);
}

// Of (1, 1, -1) with the mean rank 2: as large a sum in four of eight ways.
TEST(SignedRankProbability, IsExactForAFewTies) {
  EXPECT_EQ(SignedRankProbability({1, 1, -1}), 0.5);
  EXPECT_EQ(SignedRankProbability({0, 0}), 1);
  EXPECT_EQ(SignedRankProbability({0, 1, 2}), 0.25);
}

TEST(SignedRankProbability, IsThatOfTheNormalDistributionForMany) {
  std::vector<double> many;
  for (int i = 1; i <= 60; ++i) many.push_back(i % 3 == 0 ? -i : i);
  EXPECT_NEAR(SignedRankProbability(many), 0.017950061607939057, 1e-12);
  std::vector<double> ties;
  for (int i = 1; i <= 20; ++i) {
    const int third = i / 3;
    ties.push_back(i % 4 == 0 ? -third : third);
  }
  EXPECT_NEAR(SignedRankProbability(ties), 0.04796301369412112, 1e-12);
}

TEST(SignedRankProbability, IsExactUpToFifty) {
  std::vector<double> fifty;
  for (int i = 1; i <= 50; ++i) fifty.push_back(i % 3 == 0 ? -i : i);
  EXPECT_NEAR(SignedRankProbability(fifty), 0.01308348408559823, 1e-12);
}

}  // namespace
}  // namespace espalier
