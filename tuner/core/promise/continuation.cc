#include "tuner/core/promise/continuation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace espalier {

namespace {

constexpr std::size_t kMaxGrid = 64;
constexpr std::size_t kMaxScaleSample = 4096;
// Changes are clipped at so many interquartile ranges: one diverged curve must not set the scale.
constexpr double kClipRanges = 5;
// Costs (loss, 1 - accuracy) commonly fall with about the root of the number of steps.
constexpr double kPowerLaw = 0.5;
// So many curves' worth of trust is put in the power law, and in there being no regression.
constexpr double kPriorMean = 1;
constexpr double kPriorSlope = 4;
constexpr double kPriorNoise = 2;
constexpr double kSteepestSlope = 0.25;  // values that drift apart

// What is left to fall at a step, in units of the power law.
double Left(std::int64_t step) {
  return std::pow(static_cast<double>(std::max<std::int64_t>(step, 1)), -kPowerLaw);
}

}  // namespace

Continuation::Continuation(Direction direction, std::span<const Curve> curves,
                           std::int64_t max_step)
    : sign_(direction == Direction::kMinimize ? 1 : -1) {
  MakeScale(curves);
  MakeGrid(curves, max_step);
  if (steps_.empty()) return;
  FitChanges(Gather(curves));
}

double Continuation::Cost(double value) const { return sign_ * value - offset_; }
double Continuation::Clip(double cost) const { return std::clamp(cost, low_, high_); }

void Continuation::MakeScale(std::span<const Curve> curves) {
  std::size_t points = 0;
  for (const Curve& curve : curves) points += curve.points.size();
  const std::size_t stride = points / kMaxScaleSample + 1;
  std::vector<double> costs;
  std::size_t at = 0;
  for (const Curve& curve : curves) {
    for (const IntermediateValue& point : curve.points) {
      if (at++ % stride == 0 && std::isfinite(point.value)) costs.push_back(sign_ * point.value);
    }
  }
  if (costs.empty()) return;
  std::sort(costs.begin(), costs.end());
  const double first = costs[costs.size() / 4];
  const double third = costs[costs.size() * 3 / 4];
  offset_ = costs[costs.size() / 2];
  scale_ = third - first;
  // Few or nearly equal values say little about the scale; their size must do.
  if (!(scale_ > 1e-9 * std::abs(offset_))) scale_ = std::max(0.1 * std::abs(offset_), 1e-9);
  low_ = std::min(costs.front() - offset_, -kClipRanges * scale_);
  high_ = kClipRanges * scale_;
  low_ = std::max(low_, -4 * kClipRanges * scale_);
}

void Continuation::MakeGrid(std::span<const Curve> curves, std::int64_t max_step) {
  std::vector<std::int64_t> all;    // sorted, each once
  std::vector<std::int64_t> fresh;  // not yet merged into it; curves mostly share their steps
  const auto merge = [&] {
    all.insert(all.end(), fresh.begin(), fresh.end());
    fresh.clear();
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
  };
  for (const Curve& curve : curves) {
    for (const IntermediateValue& point : curve.points) {
      if (!std::isfinite(point.value)) continue;
      if (!std::binary_search(all.begin(), all.end(), point.step)) fresh.push_back(point.step);
    }
    if (fresh.size() > all.size()) merge();
  }
  merge();
  if (all.empty()) return;
  if (max_step > all.back()) all.push_back(max_step);
  if (all.size() <= kMaxGrid) {
    steps_ = std::move(all);
    return;
  }
  for (std::size_t i = 0; i < kMaxGrid; ++i) {
    steps_.push_back(all[i * (all.size() - 1) / (kMaxGrid - 1)]);
  }
}

// Adds the changes of one curve, linear between its points, over each step of the grid it covers.
void Continuation::GatherCurve(const Curve& curve, std::vector<Sums>& sums) const {
  std::size_t g = 0;
  const IntermediateValue* before = nullptr;
  bool have = false;  // value at steps_[g - 1] is known
  double known = 0;
  for (const IntermediateValue& point : curve.points) {
    if (!std::isfinite(point.value)) return;
    for (; g < steps_.size() && steps_[g] <= point.step; ++g) {
      if (before == nullptr && steps_[g] < point.step) continue;
      double cost = Cost(point.value);
      if (before != nullptr) {
        const auto from = static_cast<double>(before->step);
        const double part =
            (static_cast<double>(steps_[g]) - from) / (static_cast<double>(point.step) - from);
        cost = Cost(before->value) * (1 - part) + cost * part;
      }
      cost = Clip(cost);
      if (have) {
        const double change = cost - known;
        Sums& s = sums[g - 1];
        s.n += 1;
        s.y += known;
        s.yy += known * known;
        s.d += change;
        s.yd += known * change;
        s.dd += change * change;
      }
      have = true;
      known = cost;
    }
    before = &point;
  }
}

std::vector<Continuation::Sums> Continuation::Gather(std::span<const Curve> curves) const {
  std::vector<Sums> sums(steps_.size() - 1);
  for (const Curve& curve : curves) GatherCurve(curve, sums);
  return sums;
}

void Continuation::FitChanges(const std::vector<Sums>& sums) {
  double fall = 0;         // mean change a unit of the power law so far (negative: getting better)
  double fall_weight = 0;  // curves behind it
  double center = 0;
  for (std::size_t g = 0; g < sums.size(); ++g) {
    const Sums& s = sums[g];
    const double unit = Left(steps_[g]) - Left(steps_[g + 1]);
    const double expected = fall * unit;
    // Before any change was seen, anything up to the study's spread is believable.
    const double spread =
        fall_weight > 0 ? std::abs(expected) + 0.05 * scale_ * unit : scale_ * std::sqrt(unit);
    Change change;
    if (s.n > 0) center = s.y / s.n;
    change.center = center;
    change.mean = (s.d + kPriorMean * expected) / (s.n + kPriorMean);
    const double syy = s.n > 0 ? std::max(0.0, s.yy - s.y * s.y / s.n) : 0.0;
    const double syd = s.n > 0 ? s.yd - s.y * s.d / s.n : 0.0;
    double residual = s.n > 0 ? std::max(0.0, s.dd - s.d * s.d / s.n) : 0.0;
    if (s.n > 2 && syy > 1e-18) {
      const double ridge = syy * (1 + kPriorSlope / s.n);
      change.slope = std::clamp(syd / ridge, -1.0, kSteepestSlope);
      residual =
          std::max(0.0, residual - 2 * change.slope * syd + change.slope * change.slope * syy);
    }
    change.noise = (residual + kPriorNoise * spread * spread) / (s.n + kPriorNoise);
    change.noise += change.noise / (s.n + kPriorMean);  // the mean itself is uncertain
    if (syy > 1e-18) change.slope_variance = change.noise / (syy * (1 + kPriorSlope));
    changes_.push_back(change);
    if (s.n > 0 && unit > 0) {
      const double weight = std::min(s.n, 8.0);
      fall = (fall * fall_weight + weight * s.d / s.n / unit) / (fall_weight + weight);
      fall_weight = std::min(fall_weight + weight, 16.0);
    }
  }
}

Forecast Continuation::From(std::int64_t step, double cost) const {
  double mean = cost;
  double variance = 0;
  const auto at = std::upper_bound(steps_.begin(), steps_.end(), step);
  const auto start = at == steps_.begin() ? 0 : (at - steps_.begin()) - 1;
  for (auto g = static_cast<std::size_t>(start); g < changes_.size(); ++g) {
    const Change& change = changes_[g];
    const double off = mean - change.center;
    const double keep = 1 + change.slope;
    variance = keep * keep * variance + change.noise + change.slope_variance * off * off;
    mean += change.mean + change.slope * off;
  }
  return {mean, variance};
}

}  // namespace espalier
