#include "search_spaces/gaussian.h"

#include <gtest/gtest.h>

#include <cmath>

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

// Values from integrals worked out to 20 digits.
TEST(Gaussian, LogarithmOfMassIsExactHoweverFarAndNarrow) {
  struct Interval {
    double low;
    double high;
    double log_mass;
  };
  for (const auto& [low, high, log_mass] :
       {Interval{-3, 2, -0.0243951875549290979}, Interval{-5, -4, -10.369193541520449},
        Interval{-0.001, 0.002, -6.7280820235185502}, Interval{-20.01, -20, -205.62245844705968},
        Interval{-33, -31.5, -500.4949313628971}, Interval{-40, -39, -765.08315656437754},
        Interval{-80.001, -80, -3207.8664273230835}, Interval{-100.5, -100, -5005.5242086942051}}) {
    EXPECT_NEAR(LogNormalMass(low, high), log_mass, 1e-10) << low << " to " << high;
    EXPECT_EQ(LogNormalMass(-high, -low), LogNormalMass(low, high));
  }
  // Where one way of working it out gives way to the next.
  for (const double edge : {-1.0, -5.0, -30.0, -29.999}) {
    EXPECT_NEAR(LogNormalMass(edge - 0.0999 / -edge, edge),
                LogNormalMass(edge - 0.1001 / -edge, edge) + std::log(0.0999 / 0.1001), 2e-4);
  }
}

}  // namespace
}  // namespace espalier
