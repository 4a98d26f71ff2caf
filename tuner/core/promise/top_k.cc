#include "tuner/core/promise/top_k.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

namespace espalier {

namespace {

constexpr double kTail = 4.5;  // standard deviations beyond which nothing happens
constexpr std::size_t kMaxCuts = 192;
// Cuts of one distribution, in standard deviations: closer together where more of it lies.
constexpr std::array kCuts = {-3.5, -2.5, -2.0, -1.6, -1.2, -0.9, -0.6, -0.3, 0.0,
                              0.3,  0.6,  0.9,  1.2,  1.6,  2.0,  2.5,  3.5};

// The probability that the cost is below x.
double Below(const Forecast& f, double x) {
  if (f.variance <= 0) return f.mean < x ? 1.0 : 0.0;
  return 0.5 * std::erfc(-(x - f.mean) / std::sqrt(2 * f.variance));
}

double Kth(std::vector<double> values, std::size_t k) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(k - 1),
                   values.end());
  return values[k - 1];
}

// Those that have a chance: not surely behind k others.
std::vector<std::size_t> Contenders(std::span<const Forecast> costs, std::size_t k) {
  std::vector<double> latest;
  for (const Forecast& f : costs) latest.push_back(f.mean + kTail * std::sqrt(f.variance));
  const double bar = Kth(latest, k);
  std::vector<std::size_t> contenders;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (costs[i].mean - kTail * std::sqrt(costs[i].variance) <= bar) contenders.push_back(i);
  }
  return contenders;
}

// Certain values that are equal, made to differ by the least possible: the earlier one is better.
std::vector<Forecast> WithoutTies(std::span<const Forecast> costs) {
  std::vector<Forecast> result(costs.begin(), costs.end());
  std::vector<std::size_t> certain;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i].variance <= 0) certain.push_back(i);
  }
  std::stable_sort(certain.begin(), certain.end(),
                   [&](std::size_t a, std::size_t b) { return result[a].mean < result[b].mean; });
  for (std::size_t c = 1; c < certain.size(); ++c) {
    double& mean = result[certain[c]].mean;
    const double before = result[certain[c - 1]].mean;
    if (mean <= before) mean = std::nextafter(before, HUGE_VAL);
  }
  return result;
}

// Where the integral is cut: the certain values, which are at most k up to where k are surely
// below, and quantiles of the other contenders.
std::vector<double> Cuts(std::span<const Forecast> costs, std::size_t k) {
  std::vector<double> latest;
  for (const Forecast& f : costs) latest.push_back(f.mean + kTail * std::sqrt(f.variance));
  const double bar = Kth(latest, k);
  std::vector<double> certain = {bar};
  std::vector<double> quantiles;
  for (const Forecast& f : costs) {
    if (f.variance <= 0) {
      certain.push_back(f.mean);
      // The chance of the others drops right behind it.
      certain.push_back(std::nextafter(f.mean, HUGE_VAL));
      continue;
    }
    for (const double z : kCuts) {
      const double x = f.mean + z * std::sqrt(f.variance);
      if (x < bar) quantiles.push_back(x);
    }
  }
  std::sort(quantiles.begin(), quantiles.end());
  std::vector<double> cuts = std::move(certain);
  const std::size_t kept = std::min(quantiles.size(), kMaxCuts);
  for (std::size_t i = 0; i < kept; ++i) cuts.push_back(quantiles[i * quantiles.size() / kept]);
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

// For each i the probability that fewer than k of the others are below, from each one's own
// probability to be. Counts are distributed over what lies before and after i, so that no division
// by a probability near zero is needed.
class FewerThanK {
 public:
  FewerThanK(std::size_t n, std::size_t k) : k_(k), after_((n + 1) * k), before_(k) {}

  void Compute(std::span<const double> below, std::span<double> result) {
    const std::size_t n = below.size();
    std::fill(after_.begin(), after_.end(), 0.0);
    after_[n * k_] = 1;
    for (std::size_t i = n; i-- > 0;) Extend(&after_[(i + 1) * k_], below[i], &after_[i * k_]);
    std::fill(before_.begin(), before_.end(), 0.0);
    before_[0] = 1;
    for (std::size_t i = 0; i < n; ++i) {
      const double* after = &after_[(i + 1) * k_];
      double sum = 0;
      double at_most = 0;  // probability of at most k - 1 - c after i, for c before it
      for (std::size_t c = k_; c-- > 0;) {
        at_most += after[k_ - 1 - c];
        sum += before_[c] * at_most;
      }
      result[i] = sum;
      for (std::size_t c = k_; c-- > 1;) {
        before_[c] = before_[c] * (1 - below[i]) + before_[c - 1] * below[i];
      }
      before_[0] *= 1 - below[i];
    }
  }

 private:
  // The distribution of a count (below k) after one more that counts with probability p.
  void Extend(const double* from, double p, double* to) const {
    to[0] = from[0] * (1 - p);
    for (std::size_t c = 1; c < k_; ++c) to[c] = from[c] * (1 - p) + from[c - 1] * p;
  }

  std::size_t k_;
  std::vector<double> after_;
  std::vector<double> before_;
};

// Integrates over the cuts: the chance to lie between two, times the mean chance there of having
// fewer than k others below.
std::vector<double> Integrate(std::span<const Forecast> costs, std::size_t k) {
  const std::vector<double> cuts = Cuts(costs, k);
  const std::size_t n = costs.size();
  std::vector<double> result(n, 0.0);
  std::vector<double> below(n), below_before(n, 0.0);
  std::vector<double> chance(n), chance_before(n, 1.0);
  FewerThanK fewer(n, k);
  for (const double x : cuts) {
    for (std::size_t i = 0; i < n; ++i) below[i] = Below(costs[i], x);
    fewer.Compute(below, chance);
    for (std::size_t i = 0; i < n; ++i) {
      if (costs[i].variance <= 0) {
        if (costs[i].mean == x) result[i] = chance[i];
      } else {
        result[i] += (below[i] - below_before[i]) * 0.5 * (chance[i] + chance_before[i]);
      }
    }
    std::swap(below, below_before);
    std::swap(chance, chance_before);
  }
  for (double& p : result) p = std::clamp(p, 0.0, 1.0);
  return result;
}

}  // namespace

std::vector<double> TopKProbability(std::span<const Forecast> forecasts, int k) {
  const std::vector<Forecast> costs = WithoutTies(forecasts);
  std::vector<double> result(costs.size(), 1.0);
  const auto best = static_cast<std::size_t>(std::max(k, 1));
  if (costs.size() <= best) return result;
  const std::vector<std::size_t> contenders = Contenders(costs, best);
  std::vector<Forecast> contending;
  for (const std::size_t i : contenders) contending.push_back(costs[i]);
  std::fill(result.begin(), result.end(), 0.0);
  if (contending.size() <= best) {
    for (const std::size_t i : contenders) result[i] = 1.0;
    return result;
  }
  const std::vector<double> among = Integrate(contending, best);
  for (std::size_t c = 0; c < contenders.size(); ++c) result[contenders[c]] = among[c];
  return result;
}

}  // namespace espalier
