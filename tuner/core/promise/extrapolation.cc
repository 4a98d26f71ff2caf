#include "tuner/core/promise/extrapolation.h"

#include <algorithm>
#include <cmath>

namespace espalier {

namespace {

constexpr std::size_t kMostPoints = 24;  // of a condensed curve
constexpr int kRounds = 4;
// So many curves' worth of trust is put in the first guess, in shapes being equally common, and in
// the variance explaining all but kUnexplained of a foretold change.
constexpr double kPriorCurves = 3;
constexpr double kPriorShapes = 6;
constexpr double kPriorBacktests = 4;
constexpr double kUnexplained = 0.3;
constexpr double kCorrelation = 0.7;    // of start and end, before anything is known
constexpr double kGuessedNoise = 0.02;  // standard deviation by the study's scale, likewise
constexpr double kNoiseGuesses = 4;     // points' worth of trust in it
// What a shape misses of a curve is alike at neighbouring points: they say less than their number.
constexpr double kMostInformation = 16;
constexpr double kAlikeResiduals = 2;
constexpr std::size_t kBacktests = 16;      // curves
constexpr std::size_t kBacktestPoints = 6;  // of a curve that is long enough

double Squared(double x) { return x * x; }

double MedianOf(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::vector<CurvePoint> Condense(std::span<const CurvePoint> points) {
  if (points.size() <= kMostPoints) return {points.begin(), points.end()};
  std::vector<CurvePoint> result;
  const auto n = static_cast<double>(points.size());
  std::size_t from = 0;
  for (std::size_t g = 1; g <= kMostPoints; ++g) {
    const double share = static_cast<double>(g) / kMostPoints;
    const auto wanted = static_cast<std::size_t>(std::llround(n * share * share));
    const std::size_t to =
        g == kMostPoints ? points.size() : std::clamp(wanted, from + 1, points.size());
    CurvePoint mean{0, 0, static_cast<double>(to - from)};
    for (std::size_t i = from; i < to; ++i) {
      mean.step += points[i].step / mean.count;
      mean.cost += points[i].cost / mean.count;
    }
    result.push_back(mean);
    from = to;
  }
  return result;
}

Extrapolation::Extrapolation(std::span<const std::vector<CurvePoint>> curves, double first_step,
                             double last_step, double scale)
    : shapes_(first_step, std::max(last_step, first_step + 1)) {
  weights_.assign(shapes_.size(), 1.0 / static_cast<double>(shapes_.size()));
  posteriors_.resize(shapes_.size());
  likely_.resize(shapes_.size());
  EstimateNoise(curves, scale);
  StartPrior(curves, scale);
  Learn(curves);
  Backtest(curves);
}

// From how far points lie from the line between their neighbours: what a smooth curve leaves of
// that is noise.
void Extrapolation::EstimateNoise(std::span<const std::vector<CurvePoint>> curves, double scale) {
  std::vector<double> squares;
  for (const std::vector<CurvePoint>& curve : curves) {
    for (std::size_t i = 1; i + 1 < curve.size(); ++i) {
      const CurvePoint& before = curve[i - 1];
      const CurvePoint& after = curve[i + 1];
      const double share = (after.step - curve[i].step) / (after.step - before.step);
      const double bend = curve[i].cost - share * before.cost - (1 - share) * after.cost;
      squares.push_back(
          bend * bend /
          (1 / curve[i].count + Squared(share) / before.count + Squared(1 - share) / after.count));
    }
  }
  const auto n = static_cast<double>(squares.size());
  // The median of a squared standard normal is 0.455.
  const double seen = squares.empty() ? 0 : n * MedianOf(squares) / 0.455;
  noise_ = (seen + kNoiseGuesses * Squared(kGuessedNoise * scale)) / (n + kNoiseGuesses);
  noise_ = std::max(noise_, Squared(1e-4 * scale));
  misfit_ = noise_;
}

// Before anything is learnt curves fall by the study's scale, and keep most of their order.
void Extrapolation::StartPrior(std::span<const std::vector<CurvePoint>> curves, double scale) {
  const auto n = static_cast<double>(curves.size());
  double sum = 0;
  for (const std::vector<CurvePoint>& curve : curves) sum += curve.front().cost;
  const double mean = curves.empty() ? 0 : sum / n;
  double between = 0;
  for (const std::vector<CurvePoint>& curve : curves) between += Squared(curve.front().cost - mean);
  prior_.start = mean;
  prior_.start_v = (between + 2 * Squared(scale)) / (n + 2);
  prior_.end = mean - scale;
  prior_.end_v = prior_.start_v;
  prior_.both_v = kCorrelation * prior_.start_v;
}

std::vector<Extrapolation::Sums> Extrapolation::SumsOf(std::span<const CurvePoint> points) {
  std::vector<Sums> result(shapes_.size());
  double total = 0;
  for (const CurvePoint& point : points) total += point.count;
  const double trust = 1 / (1 + total / kMostInformation);
  for (const CurvePoint& point : points) {
    const std::span<const double> shape = shapes_.At(point.step);
    const double weight = point.count * trust;
    for (std::size_t k = 0; k < result.size(); ++k) {
      const double s = shape[k];
      const double e = 1 - s;
      Sums& sums = result[k];
      sums.ss += weight * s * s;
      sums.se += weight * s * e;
      sums.ee += weight * e * e;
      sums.sy += weight * s * point.cost;
      sums.ey += weight * e * point.cost;
      sums.yy += weight * point.cost * point.cost;
    }
  }
  return result;
}

Extrapolation::Precision Extrapolation::PriorPrecision() const {
  const double det = prior_.start_v * prior_.end_v - Squared(prior_.both_v);
  Precision p{.ss = prior_.end_v / det, .se = -prior_.both_v / det, .ee = prior_.start_v / det};
  p.s = p.ss * prior_.start + p.se * prior_.end;
  p.e = p.se * prior_.start + p.ee * prior_.end;
  p.misfit = p.s * prior_.start + p.e * prior_.end;
  return p;
}

// Linear regression on the two coefficients with a normal prior, and its marginal likelihood.
Extrapolation::Posterior Extrapolation::Update(const Precision& prior, const Sums& sums) const {
  const double by = 1 / misfit_;
  const double ss = prior.ss + sums.ss * by;
  const double se = prior.se + sums.se * by;
  const double ee = prior.ee + sums.ee * by;
  const double s = prior.s + sums.sy * by;
  const double e = prior.e + sums.ey * by;
  const double det = 1 / (ss * ee - se * se);
  Posterior posterior;
  Pair& pair = posterior.pair;
  pair.start_v = ee * det;
  pair.both_v = -se * det;
  pair.end_v = ss * det;
  pair.start = pair.start_v * s + pair.both_v * e;
  pair.end = pair.both_v * s + pair.end_v * e;
  posterior.misfit = sums.yy * by + prior.misfit - s * pair.start - e * pair.end;
  posterior.root = std::sqrt(det);
  return posterior;
}

void Extrapolation::Infer(std::span<const Sums> sums) {
  const Precision prior = PriorPrecision();
  double least = HUGE_VAL;
  for (std::size_t k = 0; k < sums.size(); ++k) {
    posteriors_[k] = Update(prior, sums[k]);
    least = std::min(least, posteriors_[k].misfit);
  }
  double total = 0;
  for (std::size_t k = 0; k < sums.size(); ++k) {
    likely_[k] =
        weights_[k] * posteriors_[k].root * std::exp(-0.5 * (posteriors_[k].misfit - least));
    total += likely_[k];
  }
  for (double& weight : likely_) weight /= total;
}

void Extrapolation::Learn(std::span<const std::vector<CurvePoint>> curves) {
  if (curves.empty()) return;
  std::vector<std::vector<Sums>> sums;
  for (const std::vector<CurvePoint>& curve : curves) sums.push_back(SumsOf(curve));
  const Pair first = prior_;
  for (int round = 0; round < kRounds; ++round) LearnRound(sums, first);
}

void Extrapolation::LearnRound(std::span<const std::vector<Sums>> curves, const Pair& first) {
  const auto shapes = static_cast<double>(shapes_.size());
  std::vector<double> counted(shapes_.size(), kPriorShapes / shapes);
  // Moments are taken about the first guess: costs may be large and alike.
  double start = 0, end = 0;
  double start_2 = kPriorCurves * first.start_v;
  double both_2 = kPriorCurves * first.both_v;
  double end_2 = kPriorCurves * first.end_v;
  double residual = 0, points = 0;
  for (const std::vector<Sums>& sums : curves) {
    Infer(sums);
    points += std::max(0.0, sums.front().points() - 2);
    for (std::size_t k = 0; k < sums.size(); ++k) {
      const double w = likely_[k];
      const Pair& p = posteriors_[k].pair;
      const double s = p.start - first.start;
      const double e = p.end - first.end;
      counted[k] += w;
      start += w * s;
      end += w * e;
      start_2 += w * (p.start_v + s * s);
      both_2 += w * (p.both_v + s * e);
      end_2 += w * (p.end_v + e * e);
      const Sums& t = sums[k];
      residual += w * (t.yy - 2 * (p.start * t.sy + p.end * t.ey) + p.start * p.start * t.ss +
                       2 * p.start * p.end * t.se + p.end * p.end * t.ee);
    }
  }
  const double n = static_cast<double>(curves.size()) + kPriorCurves;
  for (std::size_t k = 0; k < counted.size(); ++k) {
    weights_[k] = counted[k] / (static_cast<double>(curves.size()) + kPriorShapes);
  }
  prior_.start = first.start + start / n;
  prior_.end = first.end + end / n;
  prior_.start_v = std::max(start_2 / n - Squared(start / n), noise_);
  prior_.end_v = std::max(end_2 / n - Squared(end / n), noise_);
  const double most = 0.98 * std::sqrt(prior_.start_v * prior_.end_v);
  prior_.both_v = std::clamp(both_2 / n - start * end / (n * n), -most, most);
  misfit_ = std::max(noise_, (kAlikeResiduals * std::max(residual, 0.0) + kNoiseGuesses * noise_) /
                                 (points + kNoiseGuesses));
}

Forecast Extrapolation::At(double step) {
  const std::span<const double> shape = shapes_.At(step);
  double mean = 0, square = 0;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    const Pair& p = posteriors_[k].pair;
    const double s = shape[k];
    const double e = 1 - s;
    const double value = s * p.start + e * p.end - prior_.end;
    const double variance = s * s * p.start_v + 2 * s * e * p.both_v + e * e * p.end_v;
    mean += likely_[k] * value;
    square += likely_[k] * (variance + value * value);
  }
  return {mean + prior_.end, std::max(0.0, square - mean * mean)};
}

void Extrapolation::Backtest(std::span<const std::vector<CurvePoint>> curves) {
  double n = 0, sum = 0;
  const std::size_t stride = curves.size() / kBacktests + 1;
  for (std::size_t i = 0; i < curves.size(); i += stride) {
    const std::vector<CurvePoint>& curve = curves[i];
    if (curve.size() < kBacktestPoints) continue;
    for (const std::size_t cut : {curve.size() / 4, curve.size() / 2}) {
      if (cut < 2) continue;
      const std::span<const CurvePoint> early(curve.data(), cut);
      Infer(SumsOf(early));
      const Forecast now = At(early.back().step);
      const Forecast later = At(curve.back().step);
      const double error = Squared(curve.back().cost - later.mean);
      const double expected = later.variance + noise_ / curve.back().count;
      const double change = Squared(later.mean - now.mean) + expected;
      sum += std::clamp((error - expected) / change, 0.0, 1.0);
      n += 1;
    }
  }
  unexplained_ = (sum + Squared(kUnexplained) * kPriorBacktests) / (n + kPriorBacktests);
}

Extrapolation::Ending Extrapolation::End(std::span<const CurvePoint> points) {
  Infer(SumsOf(points));
  Ending ending;
  ending.now = At(points.back().step).mean;
  ending.end = At(shapes_.last_step());
  ending.end.variance += unexplained_ * Squared(ending.end.mean - ending.now) + noise_;
  return ending;
}

}  // namespace espalier
