#include "trial_runner/elastic/noise_scale.h"

#include <algorithm>
#include <cmath>

namespace espalier {
namespace {

constexpr double kFade = 0.999;
constexpr double kMinVar = 1e-6;
// Below this relative difference the microbatches are as good as the whole step.
constexpr double kMinContrast = 1e-9;

}  // namespace

std::optional<NoiseEstimate> EstimateNoise(const NoiseObservation& seen) {
  if (!(seen.samples > 0)) return std::nullopt;
  const double whole = 1.0 / seen.samples;
  const double contrast = seen.inverse_mean - whole;
  if (!(contrast > kMinContrast * whole)) return std::nullopt;
  const double trace = (seen.local_sqr_mean - seen.total_sqr) / contrast;
  const double sqr = seen.total_sqr - trace * whole;
  if (!std::isfinite(trace) || !std::isfinite(sqr)) return std::nullopt;
  return NoiseEstimate{sqr, trace};
}

std::optional<NoiseEstimate> EstimateNoiseFromPrevious(double sqr, double previous_sqr,
                                                       double product, double samples) {
  return EstimateNoise({.local_sqr_mean = (sqr + previous_sqr) / 2,
                        .inverse_mean = 1.0 / samples,
                        .total_sqr = (sqr + previous_sqr + 2 * product) / 4,
                        .samples = 2 * samples});
}

void NoiseAverages::Add(const NoiseEstimate& estimate, double scale, bool biased) {
  if (biased_ && !biased) sqr_ = trace_ = weight_ = 0;
  biased_ = biased;
  const double fade = std::pow(kFade, scale);
  sqr_ = fade * sqr_ + (1 - fade) * estimate.sqr;
  trace_ = fade * trace_ + (1 - fade) * estimate.trace;
  weight_ = fade * weight_ + (1 - fade);
}

double NoiseAverages::Sqr() const { return empty() ? 1.0 : std::max(sqr_ / weight_, 0.0); }

double NoiseAverages::Var(double batch_size) const {
  return empty() ? 0.0 : std::max(trace_ / weight_ / batch_size, kMinVar);
}

double Gain(double sqr, double var, double scale) {
  const double denominator = var / scale + sqr;
  return denominator > 0 ? (var + sqr) / denominator : 1.0;
}

}  // namespace espalier
