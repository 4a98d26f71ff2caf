#include "tuner/core/samplers/gp/fit.h"

#include <Eigen/Cholesky>
#include <cmath>
#include <limits>

#include "tuner/core/samplers/gp/gaussian_process.h"
#include "tuner/core/samplers/gp/lbfgs.h"

namespace espalier::samplers::gp {
namespace {

constexpr double kLengthPrior = 0.1;
constexpr double kNoiseShape = 1.1;
constexpr double kNoiseRate = 30;
// Bounds of the logarithms that are fitted, far from where the priors let them go.
constexpr double kLargestLog = 25;

// Triangular matrices up to this size are not halved any further.
constexpr Eigen::Index kSmallBlock = 48;

double LogPriorOfNoise(double noise) {
  return (kNoiseShape - 1) * std::log(noise) - kNoiseRate * noise;
}

// The prior's logarithm and gradient, as in Likelihood.
double AddPrior(const KernelParameters& parameters, bool noise_is_fixed,
                Eigen::VectorXd& gradient) {
  const Eigen::Index axes = parameters.inverse_squared_lengths.size();
  const auto w = parameters.inverse_squared_lengths.array();
  gradient.head(axes).array() += kLengthPrior / w - kLengthPrior * w;
  gradient[axes] += 1 - parameters.scale;
  if (!noise_is_fixed) {
    gradient[axes + 1] +=
        ((kNoiseShape - 1) / parameters.noise - kNoiseRate) * (parameters.noise - kLeastNoise);
  }
  return -(kLengthPrior / w + kLengthPrior * w).sum() + std::log(parameters.scale) -
         parameters.scale + LogPriorOfNoise(parameters.noise);
}

// The inverse of a lower triangular matrix, in its place, by halves:
//   [A 0; B C]^-1 = [A^-1 0; -C^-1 B A^-1 C^-1].
void InvertLower(Eigen::Ref<Eigen::MatrixXd> lower) {
  const Eigen::Index n = lower.rows();
  if (n <= kSmallBlock) {
    const Eigen::MatrixXd inverse =
        lower.triangularView<Eigen::Lower>().solve(Eigen::MatrixXd::Identity(n, n));
    lower.triangularView<Eigen::Lower>() = inverse;
    return;
  }
  const Eigen::Index half = n / 2;
  auto a = lower.topLeftCorner(half, half);
  auto b = lower.bottomLeftCorner(n - half, half);
  auto c = lower.bottomRightCorner(n - half, n - half);
  InvertLower(a);
  InvertLower(c);
  const Eigen::MatrixXd left = c.triangularView<Eigen::Lower>() * b;
  b.noalias() = -left * a.triangularView<Eigen::Lower>();
}

// The lower triangle of L^T L, in the place of the lower triangular L, by halves:
//   [A 0; B C]^T [A 0; B C] = [A^T A + B^T B, .; C^T B, C^T C].
void SquareLower(Eigen::Ref<Eigen::MatrixXd> lower) {
  const Eigen::Index n = lower.rows();
  if (n <= kSmallBlock) {
    const Eigen::MatrixXd whole = lower.triangularView<Eigen::Lower>();
    lower.triangularView<Eigen::Lower>() = whole.transpose() * whole;
    return;
  }
  const Eigen::Index half = n / 2;
  auto a = lower.topLeftCorner(half, half);
  auto b = lower.bottomLeftCorner(n - half, half);
  auto c = lower.bottomRightCorner(n - half, n - half);
  SquareLower(a);
  a.selfadjointView<Eigen::Lower>().rankUpdate(b.transpose());
  const Eigen::MatrixXd product = c.triangularView<Eigen::Lower>().transpose() * b;
  b = product;
  SquareLower(c);
}

KernelParameters ParametersAt(const Eigen::VectorXd& logs, bool noise_is_fixed) {
  const Eigen::Index axes = logs.size() - 2;
  return {logs.head(axes).array().exp().matrix(), std::exp(logs[axes]),
          noise_is_fixed ? kLeastNoise : std::exp(logs[axes + 1]) + kLeastNoise};
}

}  // namespace

KernelParameters DefaultParameters(Eigen::Index axes, bool noise_is_fixed) {
  return {Eigen::VectorXd::Ones(axes), 1, noise_is_fixed ? kLeastNoise : 1};
}

Likelihood LikelihoodOf(const Observed& observed, const KernelParameters& parameters,
                        bool noise_is_fixed) {
  const Kernel kernel(observed.unordered, parameters);
  const Eigen::Index n = observed.points.rows();
  const Eigen::Index axes = kernel.axes();
  Likelihood likelihood{0, 0, Eigen::VectorXd::Zero(axes + 2)};
  Eigen::MatrixXd covariances(n, n);
  Eigen::MatrixXd slopes(n, n);
  for (Eigen::Index j = 0; j < n; ++j) {
    const auto values = kernel.CovarianceAndSlope(
        kernel.SquaredDistances(observed.points, observed.points.row(j), j));
    covariances.col(j).tail(n - j) = values.covariance;
    slopes.col(j).tail(n - j) = values.slope;
  }
  Eigen::MatrixXd factor = covariances;
  factor.diagonal().array() += parameters.noise;
  if (!FactorInPlace(factor)) {
    likelihood.log_likelihood = -std::numeric_limits<double>::infinity();
    return likelihood;
  }
  const Eigen::VectorXd whitened = factor.triangularView<Eigen::Lower>().solve(observed.values);
  const Eigen::VectorXd weights =  // K^-1 y
      factor.transpose().triangularView<Eigen::Upper>().solve(whitened);
  likelihood.log_likelihood = -factor.diagonal().array().log().sum() - 0.5 * whitened.squaredNorm();
  // d/dt = 1/2 tr((a a^T - K^-1) dK/dt) with a the weights: eq. 5.9. The matrices are symmetric, so
  // that the lower triangle counts twice.
  Eigen::MatrixXd& outer = factor;
  InvertLower(outer);
  SquareLower(outer);
  for (Eigen::Index j = 0; j < n; ++j) {
    outer.col(j).tail(n - j) = weights[j] * weights.tail(n - j) - outer.col(j).tail(n - j);
  }
  for (Eigen::Index j = 0; j < n; ++j) {
    const Eigen::Index below = n - j - 1;
    const auto outer_below = outer.col(j).tail(below).array();
    const Eigen::ArrayXd by_distance = outer_below * slopes.col(j).tail(below).array();
    for (Eigen::Index axis = 0; axis < axes; ++axis) {
      likelihood.gradient[axis] +=
          parameters.inverse_squared_lengths[axis] *
          (by_distance *
           kernel.SquaredDifferences(observed.points, axis, observed.points(j, axis), j + 1))
              .sum();
    }
    likelihood.gradient[axes] += (outer_below * covariances.col(j).tail(below).array()).sum() +
                                 0.5 * outer(j, j) * covariances(j, j);
  }
  if (!noise_is_fixed) {
    likelihood.gradient[axes + 1] = 0.5 * outer.diagonal().sum() * (parameters.noise - kLeastNoise);
  }
  likelihood.log_prior = AddPrior(parameters, noise_is_fixed, likelihood.gradient);
  return likelihood;
}

KernelParameters FitParameters(const Observed& observed, const KernelParameters& start,
                               bool noise_is_fixed, const std::stop_token& stop) {
  const Eigen::Index axes = start.inverse_squared_lengths.size();
  Eigen::VectorXd logs(axes + 2);
  logs.head(axes) = start.inverse_squared_lengths.array().log().matrix();
  logs[axes] = std::log(start.scale);
  logs[axes + 1] = noise_is_fixed ? 0 : std::log(start.noise - 0.99 * kLeastNoise);
  const Eigen::VectorXd bounds = Eigen::VectorXd::Constant(axes + 2, kLargestLog);
  Minimization minimization(logs, -bounds, bounds, {.gradient = 1e-2});
  while (!minimization.done() && !stop.stop_requested()) {
    const Likelihood likelihood =
        LikelihoodOf(observed, ParametersAt(minimization.next(), noise_is_fixed), noise_is_fixed);
    minimization.Tell(-(likelihood.log_likelihood + likelihood.log_prior), -likelihood.gradient);
  }
  const Eigen::VectorXd& best = minimization.best().size() > 0 ? minimization.best() : logs;
  return ParametersAt(best, noise_is_fixed);
}

KernelParameters FitWithOrWithoutNoise(const Observed& observed, const KernelParameters& start,
                                       const std::stop_token& stop) {
  KernelParameters without = start;
  without.noise = kLeastNoise;
  without = FitParameters(observed, without, true, stop);
  const KernelParameters with = FitParameters(observed, start, false, stop);
  const auto tells = [&observed](const KernelParameters& parameters) {
    const Likelihood likelihood = LikelihoodOf(observed, parameters, true);
    return likelihood.log_likelihood + likelihood.log_prior - LogPriorOfNoise(parameters.noise);
  };
  const double worth = 0.5 * std::log(static_cast<double>(observed.values.size()));
  return tells(with) > tells(without) + worth ? with : without;
}

}  // namespace espalier::samplers::gp
