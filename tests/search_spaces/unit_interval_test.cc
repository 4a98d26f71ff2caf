#include "search_spaces/unit_interval.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

TEST(UnitInterval, PlacesOfDrawsLeadBackToThem) {
  const Distribution distributions[] = {
      RandInt{-3, 40},      Uniform{-1, 4},         QUniform{2, 10, 0.7},
      LogUniform{1e-5, 10}, QLogUniform{3, 900, 4}, Normal{1, 3},
      QNormal{0, 5, 0.5},   LogNormal{0, 1},        QLogNormal{2, 1, 0.5}};
  for (const Distribution& d : distributions) {
    SCOPED_TRACE(Describe(d));
    Random random(2);
    for (int i = 0; i < 500; ++i) {
      const ParameterValue value = Draw(d, random);
      const UnitCell cell = ToUnit(d, value);
      ASSERT_LE(0, cell.low);
      ASSERT_LE(cell.low, cell.high);
      ASSERT_LE(cell.high, 1);
      const ParameterValue back = FromUnit(d, cell.Middle());
      if (const auto* x = std::get_if<double>(&value)) {
        EXPECT_NEAR(std::get<double>(back), *x, 1e-9 * (1 + std::abs(*x)));
      } else {
        EXPECT_EQ(back, value);
      }
    }
  }
}

TEST(UnitInterval, EndsAreInside) {
  for (const double u : {0.0, 1.0}) {
    EXPECT_TRUE(Contains(RandInt{0, 7}, FromUnit(RandInt{0, 7}, u)));
    EXPECT_TRUE(Contains(LogUniform{1e-3, 0.1}, FromUnit(LogUniform{1e-3, 0.1}, u)));
    EXPECT_TRUE(Contains(Normal{0, 1}, FromUnit(Normal{0, 1}, u)));
  }
}

TEST(UnitInterval, RoundsTiesToEven) {
  EXPECT_EQ(RoundToMultiple(2.5, 1), 2);
  EXPECT_EQ(RoundToMultiple(3.5, 1), 4);
  EXPECT_EQ(RoundToMultiple(-7.5, 5), -10);
}

}  // namespace
}  // namespace espalier
