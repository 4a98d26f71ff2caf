#pragma once

// Private to this folder and its tests: it shows the library of linear algebra.

#include <Eigen/Core>
#include <vector>

#include "tuner/core/samplers/gp/kernel.h"

namespace espalier::populations {

using samplers::gp::Point;
using samplers::gp::Points;

// Where a function that changes with time was seen, a row for each.
struct TimedPoints {
  Points points;
  Eigen::VectorXd times;
};

// The covariance of a function that is slowly forgotten (Bogunovic, Scarlett and Cevher,
// Time-Varying Gaussian Process Bandit Optimization, AISTATS 2016, section 2; PB2's eq. 7):
//   k((x, t), (y, u)) = k(x, y) (1 - forgetting)^(|t - u| / 2),
// where k is Matérn's of the samplers (PB2 has the squared exponential).
struct TimedKernel {
  std::vector<bool> unordered{};  // by axis
  samplers::gp::KernelParameters parameters{};
  double forgetting = 0.1;  // above 0, below 1

  // A row for each of the first, a column for each of the second.
  Eigen::MatrixXd Covariances(const TimedPoints& points, const TimedPoints& to) const;
};

struct TimedLikelihood {
  // Log of the density of the values (Rasmussen and Williams 2006, eq. 5.8, without its constant).
  double log_likelihood = 0;
  // Of the parameters: as LikelihoodOf in samplers/gp/fit.h, but for the noise Gamma(1.5, 5), since
  // what an interval brings is noisy; none of the forgetting, which has bounds.
  double log_prior = 0;
  // Of their sum, by the logarithms of the inverse squared lengths, of the scale, of the noise and
  // of the forgetting.
  Eigen::VectorXd gradient;
};
TimedLikelihood LikelihoodOf(const TimedPoints& seen, const Eigen::VectorXd& values,
                             const TimedKernel& kernel);

// The kernel at a maximum of that sum, found from this one in few steps, with a noise of 1e-4 to 1
// and a forgetting of 1e-5 to 0.5 (Ray Tune's).
TimedKernel Fitted(const TimedPoints& seen, const Eigen::VectorXd& values, TimedKernel start);

// What is known of the function once it was seen: its mean by the values, its variance also by
// where it is about to be seen (Desautels, Krause and Burdick, Parallelizing Exploration-
// Exploitation Tradeoffs in Gaussian Process Bandit Optimization, JMLR 2014, section 3.2).
class TimeVaryingProcess {
 public:
  // `values` of `seen`, standardised. Either may have no points.
  TimeVaryingProcess(TimedKernel kernel, const TimedPoints& seen, const Eigen::VectorXd& values,
                     const TimedPoints& pending);

  struct Posterior {
    Eigen::VectorXd mean;
    Eigen::VectorXd variance;  // of the function, without the noise; at least 0
  };
  Posterior At(const TimedPoints& at) const;

 private:
  TimedKernel kernel_;
  TimedPoints points_;       // seen, then pending
  Eigen::MatrixXd factor_;   // L of L L^T = K + noise, in the lower triangle
  Eigen::VectorXd weights_;  // of the values of those that were seen
};

}  // namespace espalier::populations
