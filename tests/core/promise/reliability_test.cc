#include "tuner/core/promise/reliability.h"

#include <cmath>

#include "gtest/gtest.h"

namespace espalier {
namespace {

TEST(Reliability, CountsByBinAndMeasuresBothErrors) {
  const std::vector<Prediction> predictions = {{0.05, false}, {0.05, false}, {0.05, false},
                                               {0.05, true},  {0.9, true},   {0.7, true}};
  const Reliability r = MeasureReliability(predictions, 4);
  ASSERT_EQ(r.bins.size(), 4u);
  EXPECT_EQ(r.count, 6);
  EXPECT_EQ(r.bins[0].count, 4);
  EXPECT_DOUBLE_EQ(r.bins[0].predicted, 0.05);
  EXPECT_DOUBLE_EQ(r.bins[0].happened, 0.25);
  EXPECT_EQ(r.bins[1].count, 0);
  EXPECT_EQ(r.bins[2].count, 1);
  EXPECT_EQ(r.bins[3].low, 0.75);
  EXPECT_EQ(r.bins[3].high, 1);
  EXPECT_NEAR(r.brier, (3 * 0.0025 + 0.9025 + 0.01 + 0.09) / 6, 1e-12);
  EXPECT_DOUBLE_EQ(r.base_brier, 0.25);
  EXPECT_NEAR(r.expected_calibration_error, (4 * 0.2 + 0.1 + 0.3) / 6, 1e-12);
}

TEST(Reliability, OfCertainAndRightIsWithoutError) {
  const std::vector<Prediction> predictions = {{0, false}, {1, true}, {1, true}};
  const Reliability r = MeasureReliability(predictions);
  EXPECT_EQ(r.bins.back().count, 2);
  EXPECT_EQ(r.brier, 0);
  EXPECT_EQ(r.expected_calibration_error, 0);
}

TEST(Reliability, OfNothingIsEmpty) {
  const std::vector<Prediction> none = {{NAN, true}, {-0.1, true}, {1.1, false}};
  const Reliability r = MeasureReliability(none, 3);
  EXPECT_EQ(r.count, 0);
  EXPECT_EQ(r.bins.size(), 3u);
  EXPECT_EQ(r.brier, 0);
}

}  // namespace
}  // namespace espalier
