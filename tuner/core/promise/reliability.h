#pragma once

#include <span>
#include <vector>

namespace espalier {

// A probability that was given, and whether its event came true.
struct Prediction {
  double probability = 0;
  bool happened = false;
};

struct ReliabilityBin {
  double low = 0, high = 1;  // of the probabilities in it: [low, high), the last one [low, 1]
  int count = 0;
  double predicted = 0;  // their mean
  double happened = 0;   // how often it came true: close to `predicted` where calibrated
};

// How far probabilities can be trusted: the reliability table and two figures of it.
struct Reliability {
  std::vector<ReliabilityBin> bins;  // of equal width; those that nothing fell into have count 0
  int count = 0;
  double brier = 0;       // mean squared error of the probabilities
  double base_brier = 0;  // likewise if all had been told the overall frequency
  // Mean distance of a bin's frequency from its mean probability, by count (Guo et al., ICML 2017).
  double expected_calibration_error = 0;
};

// Pure. Probabilities outside [0, 1], and NaN, are left out. Requires bins > 0.
Reliability MeasureReliability(std::span<const Prediction> predictions, int bins = 10);

}  // namespace espalier
