#include "search_spaces/gaussian.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

TEST(Gaussian, QuantileInvertsProbability) {
  for (const double p : {1e-15, 1e-6, 0.02, 0.3, 0.5, 0.7, 0.99, 1 - 1e-9}) {
    EXPECT_NEAR(NormalCdf(NormalQuantile(p)), p, 1e-13 * p + 1e-16) << p;
  }
  EXPECT_NEAR(NormalQuantile(0.975), 1.959963984540054, 1e-12);
}

TEST(Gaussian, MassKeepsItsDigitsInTheUpperTail) {
  EXPECT_DOUBLE_EQ(NormalMass(9, 10), NormalMass(-10, -9));
  EXPECT_GT(NormalMass(9, 10), 0);
}

}  // namespace
}  // namespace espalier
