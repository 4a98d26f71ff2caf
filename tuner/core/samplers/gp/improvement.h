#pragma once

namespace espalier::samplers::gp {

// A value, and its derivatives by mean and variance of what it is worked out from.
struct Improvement {
  double value;
  double by_mean;
  double by_variance;
};

// Log of the expectation of max(y - threshold, 0) for y ~ N(mean, variance), without loss where it
// is tiny (Ament et al. 2023, eq. 9). Requires variance > 0.
Improvement LogExpectedImprovement(double mean, double variance, double threshold);

// Log of the probability that y >= threshold (Gardner et al. 2014). Requires variance > 0.
Improvement LogProbabilityAbove(double mean, double variance, double threshold);

}  // namespace espalier::samplers::gp
