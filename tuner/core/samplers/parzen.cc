#include "tuner/core/samplers/parzen.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "search_spaces/gaussian.h"
#include "search_spaces/portable_math.h"

namespace espalier::samplers {
namespace {

// Keeps the logarithm of a mass that underflowed finite.
constexpr double kSmallestMass = 1e-300;

double MassOn(double mu, double sigma, double low, double high) {
  return std::max(NormalMass((low - mu) / sigma, (high - mu) / sigma), kSmallestMass);
}

// From the Gaussian cut to [0, 1], by inverting its distribution function.
double DrawTruncated(double mu, double sigma, Random& random) {
  const double below = NormalCdf(-mu / sigma);
  const double above = NormalCdf((1 - mu) / sigma);
  const double p = random.Uniform(below, above);
  if (p <= 0 || p >= 1) return mu;
  return std::clamp(mu + sigma * NormalQuantile(p), 0.0, 1.0);
}

}  // namespace

ParzenEstimator::ParzenEstimator(std::vector<const Axis*> axes, std::vector<Point> points,
                                 std::vector<double> weights, Bandwidth bandwidth)
    : axes_(std::move(axes)), points_(std::move(points)), weights_(std::move(weights)) {
  ESPALIER_CHECK(points_.size() == weights_.size(), "one weight a point");
  weights_.push_back(1.0);
  const double sum = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  for (double& weight : weights_) weight /= sum;
  smoothing_ = 1.0 / static_cast<double>(points_.size() + 1);
  sigma_.resize(points_.size() * axes_.size());
  if (bandwidth == Bandwidth::kShared) {
    SetSharedBandwidths();
  } else {
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) SetNeighborBandwidths(axis);
  }
  SetConstants();
}

void ParzenEstimator::SetSharedBandwidths() {
  // Scott's rule in n and the number of axes, on half the points' own spread: as good points draw
  // together, so do their kernels. The spread counts the prior as one point more, and sigma has a
  // floor; without the two, an early chance cluster closes in on itself and never comes out.
  constexpr double kSpreadShare = 0.5;
  constexpr double kSmallest = 0.02;
  constexpr double kPriorMean = 0.5;
  constexpr double kPriorSquare = 1.0 / 3.0;
  const auto n = static_cast<double>(points_.size());
  const double shrink =
      QuickExp(-QuickLog(std::max(n, 1.0)) / (static_cast<double>(axes_.size()) + 4));
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    double mean = kPriorMean / (n + 1);
    double square = kPriorSquare / (n + 1);
    for (const Point& point : points_) {
      mean += point[axis].at / (n + 1);
      square += point[axis].at * point[axis].at / (n + 1);
    }
    const double spread = std::sqrt(std::max(square - mean * mean, 0.0));
    const double sigma = std::max(kSpreadShare * spread * shrink, kSmallest);
    for (std::size_t k = 0; k < points_.size(); ++k) Sigma(k, axis) = sigma;
  }
}

void ParzenEstimator::SetNeighborBandwidths(std::size_t axis) {
  if (axes_[axis]->unordered()) return;
  const double smallest = 1.0 / std::min(100.0, 1.0 + static_cast<double>(points_.size()));
  constexpr double kPriorMiddle = 0.5;
  std::vector<double> sorted = {kPriorMiddle};
  for (const Point& point : points_) sorted.push_back(point[axis].at);
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t k = 0; k < points_.size(); ++k) {
    const double at = points_[k][axis].at;
    const auto first = std::lower_bound(sorted.begin(), sorted.end(), at);
    const auto next = first + 1;
    const double left = first == sorted.begin() ? 0.0 : at - *(first - 1);
    const double right = next == sorted.end() ? 0.0 : *next - at;
    Sigma(k, axis) = std::clamp(std::max(left, right), smallest, 1.0);
  }
}

void ParzenEstimator::SetConstants() {
  const double log_root = 0.5 * QuickLog(2 * std::numbers::pi);
  constants_.resize(points_.size());
  for (std::size_t k = 0; k < points_.size(); ++k) {
    double constant = QuickLog(weights_[k]);
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
      if (axes_[axis]->unordered()) {
        constant -= QuickLog(1 + smoothing_ * static_cast<double>(axes_[axis]->options()));
        continue;
      }
      const double sigma = Sigma(k, axis);
      constant -= QuickLog(MassOn(points_[k][axis].at, sigma, 0, 1));
      if (axes_[axis]->continuous()) constant -= QuickLog(sigma) + log_root;
    }
    constants_[k] = constant;
  }
}

double ParzenEstimator::LogKernel(std::size_t k, const Point& point) const {
  double sum = constants_[k];
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    const Coordinate& center = points_[k][i];
    if (axes_[i]->unordered()) {
      sum += QuickLog(smoothing_ + (center.cell == point[i].cell ? 1.0 : 0.0));
    } else if (axes_[i]->continuous()) {
      const double z = (point[i].at - center.at) / Sigma(k, i);
      sum -= 0.5 * z * z;
    } else {
      const UnitCell& cell = axes_[i]->cell(point[i].cell);
      sum += QuickLog(MassOn(center.at, Sigma(k, i), cell.low, cell.high));
    }
  }
  return sum;
}

double ParzenEstimator::LogPrior(const Point& point) const {
  double sum = QuickLog(weights_.back());
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i]->unordered()) {
      sum -= QuickLog(static_cast<double>(axes_[i]->options()));
    } else if (!axes_[i]->continuous()) {
      const UnitCell& cell = axes_[i]->cell(point[i].cell);
      sum += QuickLog(std::max(cell.high - cell.low, kSmallestMass));
    }
  }
  return sum;
}

double ParzenEstimator::LogDensity(const Point& point) const {
  std::vector<double> terms(points_.size() + 1);
  for (std::size_t k = 0; k < points_.size(); ++k) terms[k] = LogKernel(k, point);
  terms.back() = LogPrior(point);
  const double largest = *std::max_element(terms.begin(), terms.end());
  double sum = 0;
  for (const double term : terms) sum += QuickExp(term - largest);
  return largest + QuickLog(sum);
}

Coordinate ParzenEstimator::SampleAxis(std::size_t k, std::size_t axis, Random& random) const {
  const bool prior = k == points_.size();
  if (!axes_[axis]->unordered()) {
    const double u =
        prior ? random.Uniform() : DrawTruncated(points_[k][axis].at, Sigma(k, axis), random);
    return axes_[axis]->PlaceAt(u);
  }
  const std::size_t options = axes_[axis]->options();
  const double even = smoothing_ * static_cast<double>(options);
  const bool observed = !prior && random.Uniform(0, 1 + even) < 1;
  if (observed) return points_[k][axis];
  return {0, static_cast<std::size_t>(random.Below(options))};
}

Point ParzenEstimator::Sample(Random& random) const {
  double rest = random.Uniform();
  std::size_t k = 0;
  while (k < points_.size() && rest >= weights_[k]) rest -= weights_[k++];
  Point point(axes_.size());
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    point[axis] = SampleAxis(k, axis, random);
  }
  return point;
}

}  // namespace espalier::samplers
