#include "tuner/core/samplers/gp/lbfgs.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace espalier::samplers::gp {
namespace {

constexpr std::size_t kPairs = 10;
constexpr int kMostTried = 20;      // lengths along one direction
constexpr double kDecrease = 1e-4;  // Wolfe's two constants
constexpr double kCurvature = 0.9;
constexpr double kLeastCurvature = 1e-12;

}  // namespace

Minimization::Minimization(const Vector& start, Vector low, Vector high, MinimizationLimits limits)
    : low_(std::move(low)), high_(std::move(high)), limits_(limits) {
  next_ = start.cwiseMax(low_).cwiseMin(high_);
}

Minimization::Vector Minimization::Free() const {
  Vector free = Vector::Ones(at_.size());
  for (Eigen::Index i = 0; i < at_.size(); ++i) {
    const bool held =
        (at_[i] <= low_[i] && gradient_[i] >= 0) || (at_[i] >= high_[i] && gradient_[i] <= 0);
    if (held) free[i] = 0;
  }
  return free;
}

void Minimization::Tell(double value, const Vector& gradient) {
  const bool usable = std::isfinite(value) && gradient.allFinite();
  if (!started_) {
    started_ = true;
    at_ = next_;
    value_ = value;
    gradient_ = gradient;
    done_ = !usable;
    if (!done_) StartSearch();
    return;
  }
  const Vector moved = next_ - at_;
  const bool lower =
      usable && value <= value_ + kDecrease * gradient_.dot(moved) && value <= value_;
  if (++tried_ > kMostTried) {
    if (lower) return Accept(value, gradient);
    done_ = true;
    return;
  }
  if (!lower) {
    longest_ = length_;
    // The minimum of the parabola through what is known, kept away from both ends.
    const double slope = gradient_.dot(moved) / length_;
    const double bend = usable ? (value - value_ - slope * length_) / (length_ * length_) : 0;
    const double lowest = bend > 0 ? -slope / (2 * bend) : 0;
    const double width = longest_ - shortest_;
    return Propose(std::clamp(lowest, shortest_ + 0.1 * width, shortest_ + 0.5 * width));
  }
  // Still as steep on what has not met a bound: further on.
  double before = 0;
  double after = 0;
  for (Eigen::Index i = 0; i < moved.size(); ++i) {
    if (next_[i] <= low_[i] || next_[i] >= high_[i]) continue;
    before += gradient_[i] * direction_[i];
    after += gradient[i] * direction_[i];
  }
  if (before < 0 && after < kCurvature * before) {
    const bool bounded = longest_ > 0;
    shortest_ = length_;
    return Propose(bounded ? 0.5 * (shortest_ + longest_) : 2 * length_);
  }
  Accept(value, gradient);
}

void Minimization::Accept(double value, const Vector& gradient) {
  Pair pair{next_ - at_, gradient - gradient_};
  const double decrease = value_ - value;
  const double size = std::max({std::abs(value_), std::abs(value), 1.0});
  at_ = next_;
  value_ = value;
  gradient_ = gradient;
  if (pair.step.dot(pair.change) > kLeastCurvature * pair.change.squaredNorm()) {
    pairs_.push_back(std::move(pair));
    if (pairs_.size() > kPairs) pairs_.pop_front();
  }
  if (++iterations_ >= limits_.iterations || decrease <= limits_.decrease * size) {
    done_ = true;
    return;
  }
  StartSearch();
}

void Minimization::StartSearch() {
  const Vector free = Free();
  const Vector left = gradient_.cwiseProduct(free);
  if (left.size() == 0 || left.lpNorm<Eigen::Infinity>() <= limits_.gradient) {
    done_ = true;
    return;
  }
  direction_ = Direction(free);
  if (!(direction_.dot(left) < 0)) {
    pairs_.clear();
    direction_ = -left;
  }
  shortest_ = 0;
  longest_ = 0;
  tried_ = 0;
  Propose(pairs_.empty() ? std::min(1.0, 1.0 / left.lpNorm<1>()) : 1.0);
}

Minimization::Vector Minimization::Direction(const Vector& free) const {
  Vector q = gradient_.cwiseProduct(free);
  std::vector<double> share(pairs_.size());
  std::vector<double> curvature(pairs_.size());
  double scale = 0;  // of the newest pair that says anything of the free variables
  for (std::size_t i = pairs_.size(); i-- > 0;) {
    const Vector change = pairs_[i].change.cwiseProduct(free);
    curvature[i] = pairs_[i].step.dot(change);
    if (curvature[i] <= kLeastCurvature * change.squaredNorm()) {
      curvature[i] = 0;
      continue;
    }
    if (scale == 0) scale = curvature[i] / change.squaredNorm();
    share[i] = pairs_[i].step.dot(q) / curvature[i];
    q -= share[i] * change;
  }
  if (scale > 0) q *= scale;
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    if (curvature[i] == 0) continue;
    const double back = pairs_[i].change.cwiseProduct(free).dot(q) / curvature[i];
    q += (share[i] - back) * pairs_[i].step.cwiseProduct(free);
  }
  return -q;
}

void Minimization::Propose(double length) {
  length_ = length;
  next_ = (at_ + length * direction_).cwiseMax(low_).cwiseMin(high_);
}

}  // namespace espalier::samplers::gp
