#include "tuner/core/population/time_varying_process.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tuner/core/samplers/gp/gaussian_process.h"
#include "tuner/core/samplers/gp/lbfgs.h"

namespace espalier::populations {

namespace {

using samplers::gp::FactorInPlace;
using samplers::gp::FactorOf;
using samplers::gp::Kernel;
using samplers::gp::KernelParameters;
using samplers::gp::Minimization;

constexpr double kLengthPrior = 0.1;
constexpr double kNoiseShape = 1.5;
constexpr double kNoiseRate = 5;
constexpr double kLargestLog = 10;
constexpr double kMostForgetting = 0.5;
constexpr int kMostIterations = 8;

// The logarithms that are fitted: of the inverse squared lengths, then these.
Eigen::VectorXd LogsOf(const TimedKernel& kernel) {
  const Eigen::Index axes = kernel.parameters.inverse_squared_lengths.size();
  Eigen::VectorXd logs(axes + 3);
  logs.head(axes) = kernel.parameters.inverse_squared_lengths.array().log().matrix();
  logs[axes] = std::log(kernel.parameters.scale);
  logs[axes + 1] = std::log(kernel.parameters.noise);
  logs[axes + 2] = std::log(kernel.forgetting);
  return logs;
}

TimedKernel KernelAt(const Eigen::VectorXd& logs, std::vector<bool> unordered) {
  const Eigen::Index axes = logs.size() - 3;
  return {std::move(unordered),
          {logs.head(axes).array().exp().matrix(), std::exp(logs[axes]), std::exp(logs[axes + 1])},
          std::exp(logs[axes + 2])};
}

double AddTimedPrior(const KernelParameters& parameters, Eigen::VectorXd& gradient) {
  const Eigen::Index axes = parameters.inverse_squared_lengths.size();
  const auto w = parameters.inverse_squared_lengths.array();
  gradient.head(axes).array() += kLengthPrior / w - kLengthPrior * w;
  gradient[axes] += 1 - parameters.scale;
  gradient[axes + 1] += kNoiseShape - 1 - kNoiseRate * parameters.noise;
  return -(kLengthPrior / w + kLengthPrior * w).sum() + std::log(parameters.scale) -
         parameters.scale + (kNoiseShape - 1) * std::log(parameters.noise) -
         kNoiseRate * parameters.noise;
}

}  // namespace

Eigen::MatrixXd TimedKernel::Covariances(const TimedPoints& points, const TimedPoints& to) const {
  Eigen::MatrixXd covariances = Kernel(unordered, parameters).Covariances(points.points, to.points);
  const double by_interval = 0.5 * std::log1p(-forgetting);
  for (Eigen::Index j = 0; j < covariances.cols(); ++j) {
    covariances.col(j).array() *= (by_interval * (points.times.array() - to.times[j]).abs()).exp();
  }
  return covariances;
}

TimedLikelihood LikelihoodOf(const TimedPoints& seen, const Eigen::VectorXd& values,
                             const TimedKernel& kernel) {
  const Kernel of_points(kernel.unordered, kernel.parameters);
  const Eigen::Index n = seen.points.rows();
  const Eigen::Index axes = of_points.axes();
  const double by_interval = 0.5 * std::log1p(-kernel.forgetting);
  TimedLikelihood likelihood{.gradient = Eigen::VectorXd::Zero(axes + 3)};
  Eigen::MatrixXd covariances(n, n);
  Eigen::MatrixXd slopes(n, n);
  for (Eigen::Index j = 0; j < n; ++j) {
    const auto of_j = of_points.CovarianceAndSlope(
        of_points.SquaredDistances(seen.points, seen.points.row(j), j));
    const Eigen::ArrayXd kept =
        (by_interval * (seen.times.tail(n - j).array() - seen.times[j]).abs()).exp();
    covariances.col(j).tail(n - j) = of_j.covariance * kept;
    slopes.col(j).tail(n - j) = of_j.slope * kept;
  }
  Eigen::MatrixXd factor = covariances;
  factor.diagonal().array() += kernel.parameters.noise;
  if (!FactorInPlace(factor)) {
    likelihood.log_likelihood = -std::numeric_limits<double>::infinity();
    return likelihood;
  }
  const auto lower = factor.triangularView<Eigen::Lower>();
  const Eigen::MatrixXd inverse = lower.solve(Eigen::MatrixXd::Identity(n, n));  // of L
  const Eigen::VectorXd whitened = inverse * values;
  const Eigen::VectorXd weights = inverse.transpose() * whitened;
  likelihood.log_likelihood = -factor.diagonal().array().log().sum() - 0.5 * whitened.squaredNorm();
  // d/dp = 1/2 tr((a a^T - K^-1) dK/dp) with a the weights: eq. 5.9.
  const Eigen::MatrixXd outer = weights * weights.transpose() - inverse.transpose() * inverse;
  // d/df of (1 - f)^(|t - u| / 2), by the logarithm of f and over the factor itself.
  const double forgotten = -0.5 * kernel.forgetting / (1 - kernel.forgetting);
  for (Eigen::Index j = 0; j < n; ++j) {
    const Eigen::Index below = n - j - 1;
    const auto outer_below = outer.col(j).tail(below).array();
    const Eigen::ArrayXd by_distance = outer_below * slopes.col(j).tail(below).array();
    for (Eigen::Index axis = 0; axis < axes; ++axis) {
      likelihood.gradient[axis] +=
          kernel.parameters.inverse_squared_lengths[axis] *
          (by_distance *
           of_points.SquaredDifferences(seen.points, axis, seen.points(j, axis), j + 1))
              .sum();
    }
    const Eigen::ArrayXd by_scale = outer_below * covariances.col(j).tail(below).array();
    likelihood.gradient[axes] += by_scale.sum() + 0.5 * outer(j, j) * covariances(j, j);
    likelihood.gradient[axes + 2] +=
        forgotten * (by_scale * (seen.times.tail(below).array() - seen.times[j]).abs()).sum();
  }
  likelihood.gradient[axes + 1] = 0.5 * outer.trace() * kernel.parameters.noise;
  likelihood.log_prior = AddTimedPrior(kernel.parameters, likelihood.gradient);
  return likelihood;
}

TimedKernel Fitted(const TimedPoints& seen, const Eigen::VectorXd& values, TimedKernel start) {
  const Eigen::VectorXd logs = LogsOf(start);
  Eigen::VectorXd low = Eigen::VectorXd::Constant(logs.size(), -kLargestLog);
  Eigen::VectorXd high = -low;
  low[logs.size() - 2] = std::log(1e-4);
  high[logs.size() - 2] = 0;
  low[logs.size() - 1] = std::log(1e-5);
  high[logs.size() - 1] = std::log(kMostForgetting);
  Minimization minimization(logs, low, high,
                            {.gradient = 0.05, .decrease = 1e-4, .iterations = kMostIterations});
  while (!minimization.done()) {
    const TimedLikelihood likelihood =
        LikelihoodOf(seen, values, KernelAt(minimization.next(), start.unordered));
    minimization.Tell(-(likelihood.log_likelihood + likelihood.log_prior), -likelihood.gradient);
  }
  return KernelAt(minimization.best(), std::move(start.unordered));
}

TimeVaryingProcess::TimeVaryingProcess(TimedKernel kernel, const TimedPoints& seen,
                                       const Eigen::VectorXd& values, const TimedPoints& pending)
    : kernel_(std::move(kernel)) {
  const Eigen::Index n = seen.points.rows();
  const Eigen::Index m = pending.points.rows();
  points_.points.resize(n + m, seen.points.cols());
  points_.points << seen.points, pending.points;
  points_.times.resize(n + m);
  points_.times << seen.times, pending.times;
  factor_ = FactorOf(kernel_.Covariances(points_, points_), kernel_.parameters.noise);
  const auto of_seen = factor_.topLeftCorner(n, n);
  weights_ = of_seen.triangularView<Eigen::Lower>().solve(values);
  of_seen.transpose().triangularView<Eigen::Upper>().solveInPlace(weights_);
}

TimeVaryingProcess::Posterior TimeVaryingProcess::At(const TimedPoints& at) const {
  Eigen::MatrixXd covariances = kernel_.Covariances(points_, at);
  Posterior posterior;
  posterior.mean = covariances.topRows(weights_.size()).transpose() * weights_;
  factor_.triangularView<Eigen::Lower>().solveInPlace(covariances);
  posterior.variance =
      (kernel_.parameters.scale - covariances.colwise().squaredNorm().array()).max(0.0).matrix();
  return posterior;
}

}  // namespace espalier::populations
