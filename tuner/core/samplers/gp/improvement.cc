#include "tuner/core/samplers/gp/improvement.h"

#include <cmath>
#include <numbers>

#include "search_spaces/portable_math.h"

namespace espalier::samplers::gp {
namespace {

const double kLogSqrt2Pi = 0.5 * std::log(2 * std::numbers::pi);

double Density(double z) { return std::exp(-0.5 * z * z - kLogSqrt2Pi); }

// The standard normal's probability below z over its density there, for z <= 0. It is about 1 / -z.
double MillsRatio(double z) {
  return std::sqrt(std::numbers::pi / 2) * QuickErfcx(-z / std::numbers::sqrt2);
}

// Below this, expectations are written by the density there and Mills' ratio.
constexpr double kTail = -1;
// Below this, 1 + z m cancels; it is 1 / z^2 - 3 / z^4 + ...
constexpr double kFarTail = -1e3;

}  // namespace

Improvement LogExpectedImprovement(double mean, double variance, double threshold) {
  const double sigma = std::sqrt(variance);
  const double z = (mean - threshold) / sigma;
  double log_h = 0;        // of h = z * probability + density, the expectation for sigma = 1
  double probability = 0;  // over h
  double density = 0;      // over h
  if (z > kTail) {
    const double above = z > 0 ? 1 - 0.5 * QuickErfc(z / std::numbers::sqrt2)
                               : 0.5 * QuickErfc(-z / std::numbers::sqrt2);
    const double h = z * above + Density(z);
    log_h = std::log(h);
    probability = above / h;
    density = Density(z) / h;
  } else {
    const double ratio = MillsRatio(z);
    const double rest = z > kFarTail ? 1 + z * ratio : (1 - 3 / (z * z)) / (z * z);
    log_h = -0.5 * z * z - kLogSqrt2Pi + std::log(rest);
    probability = ratio / rest;
    density = 1 / rest;
  }
  return {log_h + std::log(sigma), probability / sigma, density / (2 * variance)};
}

Improvement LogProbabilityAbove(double mean, double variance, double threshold) {
  const double sigma = std::sqrt(variance);
  const double z = (mean - threshold) / sigma;
  double value = 0;
  double slope = 0;  // density over probability
  if (z > kTail) {
    const double below = z > 0 ? 0.5 * QuickErfc(z / std::numbers::sqrt2)
                               : 1 - 0.5 * QuickErfc(-z / std::numbers::sqrt2);
    value = std::log1p(-below);
    slope = Density(z) / (1 - below);
  } else {
    const double ratio = MillsRatio(z);
    value = -0.5 * z * z - kLogSqrt2Pi + std::log(ratio);
    slope = 1 / ratio;
  }
  return {value, slope / sigma, -slope * z / (2 * variance)};
}

}  // namespace espalier::samplers::gp
