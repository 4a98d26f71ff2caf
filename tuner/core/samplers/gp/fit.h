#pragma once

#include <Eigen/Core>
#include <stop_token>

#include "tuner/core/samplers/gp/kernel.h"

namespace espalier::samplers::gp {

// The noise of an objective that gives the same value each time: what keeps the covariance matrix
// from being singular.
inline constexpr double kLeastNoise = 1e-6;

// Observed points, and their standardised values.
struct Observed {
  Points points;
  Eigen::VectorXd values;
  std::vector<bool> unordered;  // by axis
};

// Log of the density of the values given the parameters (Rasmussen and Williams 2006, eq. 5.8,
// without its constant), and of the parameters' prior: Gamma(2, 1) of the scale, Gamma(1.1, 30) of
// the noise, and for each inverse squared length w exp(-0.1 / w - 0.1 w), which keeps lengths
// between a tenth and ten times the cube's side unless the values say otherwise. -infinity where
// the covariances have no factor.
struct Likelihood {
  double log_likelihood;
  double log_prior;
  // Of their sum, by the logarithms of the inverse squared lengths, of the scale, and of the noise
  // above the least; the last is 0 where the noise is fixed at that.
  Eigen::VectorXd gradient;
};
Likelihood LikelihoodOf(const Observed& observed, const KernelParameters& parameters,
                        bool noise_is_fixed);

// The parameters at a maximum of that sum, found from `start`. Once `stop` is asked for, anything.
KernelParameters FitParameters(const Observed& observed, const KernelParameters& start,
                               bool noise_is_fixed, const std::stop_token& stop);

// Those of a model with noise, or of one with the least noise, whichever tells more of the values:
// the former has a parameter more, and is taken where the logarithm of the values' density is
// greater by more than half the logarithm of their number (Schwarz 1978, Estimating the Dimension
// of a Model). `start` is for noise.
KernelParameters FitWithOrWithoutNoise(const Observed& observed, const KernelParameters& start,
                                       const std::stop_token& stop);

// Where the fit of parameters that nothing is known of starts.
KernelParameters DefaultParameters(Eigen::Index axes, bool noise_is_fixed);

}  // namespace espalier::samplers::gp
