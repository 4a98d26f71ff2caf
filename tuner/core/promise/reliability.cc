#include "tuner/core/promise/reliability.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/check.h"

namespace espalier {

Reliability MeasureReliability(std::span<const Prediction> predictions, int bins) {
  ESPALIER_CHECK(bins > 0, "a reliability table has at least one bin");
  Reliability result;
  for (int b = 0; b < bins; ++b) {
    ReliabilityBin& bin = result.bins.emplace_back();
    bin.low = static_cast<double>(b) / bins;
    bin.high = static_cast<double>(b + 1) / bins;
  }
  double squares = 0;
  double happened = 0;
  for (const Prediction& prediction : predictions) {
    const double p = prediction.probability;
    if (!(p >= 0 && p <= 1)) continue;
    const auto at = std::min(static_cast<std::size_t>(p * bins), result.bins.size() - 1);
    const double outcome = prediction.happened ? 1 : 0;
    ReliabilityBin& bin = result.bins[at];
    ++bin.count;
    bin.predicted += p;
    bin.happened += outcome;
    ++result.count;
    happened += outcome;
    squares += (p - outcome) * (p - outcome);
  }
  if (result.count == 0) return result;
  for (ReliabilityBin& bin : result.bins) {
    if (bin.count == 0) continue;
    result.expected_calibration_error += std::abs(bin.predicted - bin.happened) / result.count;
    bin.predicted /= bin.count;
    bin.happened /= bin.count;
  }
  const double frequency = happened / result.count;
  result.brier = squares / result.count;
  result.base_brier = frequency * (1 - frequency);
  return result;
}

}  // namespace espalier
