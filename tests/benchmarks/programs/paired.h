#pragma once

#include <vector>

namespace espalier {

// Statistics of paired samples, for benchmarks that run every contender on the same seeds.

double Median(std::vector<double> values);

// A percentile bootstrap interval of 95 % of the median, seeded.
struct Interval {
  double low = 0;
  double high = 0;
};
Interval MedianInterval(const std::vector<double>& values);

// Wilcoxon's signed-rank test, one-sided: the probability of differences at least as much above
// zero as these if there were none. Zeros are left out, ties share their ranks, normal
// approximation; 1 where fewer than 6 differences are left.
double ProbabilityNotAbove(const std::vector<double>& differences);

inline constexpr double kSignificant = 0.05;

}  // namespace espalier
