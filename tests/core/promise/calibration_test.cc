// What is promised must come true about as often as promised, whatever the curves are like.

#include <string>

#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "tests/core/promise/studies_of_curves.h"
#include "tuner/core/promise/promise.h"
#include "tuner/core/promise/reliability.h"

namespace espalier {
namespace {

std::string Table(const Reliability& r) {
  std::string text =
      absl::StrFormat("%d predictions, Brier score %.4f (%.4f by frequency), ECE %.4f", r.count,
                      r.brier, r.base_brier, r.expected_calibration_error);
  for (const ReliabilityBin& bin : r.bins) {
    absl::StrAppendFormat(&text, "\n  %.1f-%.1f  %5d  predicted %.3f  happened %.3f", bin.low,
                          bin.high, bin.count, bin.predicted, bin.happened);
  }
  return text;
}

Reliability Measure(const CurveFamily& family, Seen seen, int studies, int trials) {
  Random random(MixSeed(17, family.name));
  std::vector<Prediction> predictions;
  for (int study = 0; study < studies; ++study) {
    const PartialStudy partial(family.draw(random.Next(), trials), seen, random);
    const std::vector<double> promise = Promise(Direction::kMinimize, partial.curves(),
                                                {.best_k = 1, .max_step = family.last_step});
    for (std::size_t i = 0; i < promise.size(); ++i) {
      if (!partial.curves()[i].ended) predictions.push_back({promise[i], i == partial.best()});
    }
  }
  return MeasureReliability(predictions);
}

struct Bar {
  std::string_view family;
  double brier_over_base;  // how much better than telling everyone the frequency
  double calibration_error;
};

void Expect(Seen seen, int studies, int trials, const std::vector<Bar>& bars) {
  for (const Bar& bar : bars) {
    for (const CurveFamily& family : CurveFamilies()) {
      if (family.name != bar.family) continue;
      const Reliability r = Measure(family, seen, studies, trials);
      EXPECT_LT(r.brier, bar.brier_over_base * r.base_brier) << bar.family << ": " << Table(r);
      EXPECT_LT(r.expected_calibration_error, bar.calibration_error)
          << bar.family << ": " << Table(r);
    }
  }
}

TEST(PromiseCalibration, OfTrialsSideBySide) {
  Expect(Seen::kTogether, 60, 16,
         {{"poolbench", 0.75, 0.02},
          {"power laws", 0.5, 0.03},
          {"plateaus", 1.05, 0.035},  // which one ends best is mostly noise
          {"diverging", 0.8, 0.03},
          {"dropping", 0.75, 0.03}});
}

TEST(PromiseCalibration, BesideCompleteTrials) {
  Expect(Seen::kSpread, 60, 16,
         {{"poolbench", 0.85, 0.05},
          {"power laws", 0.4, 0.03},
          {"plateaus", 1.0, 0.04},
          {"diverging", 0.9, 0.06},
          {"dropping", 0.6, 0.04}});
}

TEST(PromiseCalibration, WhereHalvingHasStoppedMost) {
  // Few are left of each study, so that the figures themselves are uncertain by some 0.03; and of
  // those nobody may have got to where all curves drop.
  Expect(Seen::kThinned, 150, 64,
         {{"poolbench", 0.8, 0.1},
          {"power laws", 0.8, 0.1},
          {"plateaus", 1.05, 0.15},
          {"diverging", 0.9, 0.1},
          {"dropping", 1.05, 0.2}});
}

TEST(PromiseCalibration, OfFewTrials) {
  Expect(Seen::kTogether, 100, 3,
         {{"poolbench", 0.4, 0.06}, {"power laws", 0.4, 0.08}, {"plateaus", 0.8, 0.1}});
}

}  // namespace
}  // namespace espalier
