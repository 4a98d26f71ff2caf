#include "tests/benchmarks/programs/paired.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/random.h"

namespace espalier {

namespace {

constexpr int kResamples = 2000;
constexpr std::size_t kFewest = 6;

double SortedMedian(const std::vector<double>& sorted) {
  const std::size_t middle = sorted.size() / 2;
  if (sorted.size() % 2 == 1) return sorted[middle];
  return (sorted[middle - 1] + sorted[middle]) / 2;
}

}  // namespace

double Median(std::vector<double> values) {
  if (values.empty()) return std::nan("");
  std::sort(values.begin(), values.end());
  return SortedMedian(values);
}

Interval MedianInterval(const std::vector<double>& values) {
  if (values.empty()) return {std::nan(""), std::nan("")};
  Random random(20);
  std::vector<double> medians;
  std::vector<double> sample(values.size());
  for (int i = 0; i < kResamples; ++i) {
    for (double& drawn : sample) drawn = values[random.Below(values.size())];
    medians.push_back(Median(sample));
  }
  std::sort(medians.begin(), medians.end());
  return {medians[static_cast<std::size_t>(0.025 * kResamples)],
          medians[static_cast<std::size_t>(0.975 * kResamples)]};
}

double ProbabilityNotAbove(const std::vector<double>& differences) {
  std::vector<double> left;
  for (const double d : differences) {
    if (d != 0) left.push_back(d);
  }
  if (left.size() < kFewest) return 1;
  std::sort(left.begin(), left.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
  double above = 0;  // rank sum of the positive ones
  double ties = 0;
  for (std::size_t i = 0; i < left.size();) {
    std::size_t end = i;
    while (end < left.size() && std::abs(left[end]) == std::abs(left[i])) ++end;
    const double rank = (static_cast<double>(i + end) + 1) / 2;
    const auto count = static_cast<double>(end - i);
    ties += count * count * count - count;
    for (; i < end; ++i) above += left[i] > 0 ? rank : 0;
  }
  const auto n = static_cast<double>(left.size());
  const double mean = n * (n + 1) / 4;
  const double variance = n * (n + 1) * (2 * n + 1) / 24 - ties / 48;
  const double z = (above - mean - 0.5) / std::sqrt(variance);
  return 0.5 * std::erfc(z / std::sqrt(2.0));
}

}  // namespace espalier
