#include "tuner/core/samplers/gp/gaussian_process.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace espalier::samplers::gp {

bool FactorInPlace(Eigen::MatrixXd& matrix) {
  const Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>> factor(matrix);
  return factor.info() == Eigen::Success;
}

Eigen::MatrixXd FactorOf(const Eigen::MatrixXd& matrix, double noise) {
  for (;; noise *= 10) {
    Eigen::MatrixXd factor = matrix;
    factor.diagonal().array() += noise;
    if (FactorInPlace(factor)) return factor;
    ESPALIER_CHECK(std::isfinite(noise), "a covariance that is not finite");
  }
}

Eigen::VectorXd Trend::At(const Points& at) const {
  if (!process) return Eigen::VectorXd::Zero(at.rows());
  return (slope * process->At(at).mean.row(0).transpose()).array() + offset;
}

GaussianProcess::GaussianProcess(Kernel kernel, Points points, Eigen::Index leading, Trend trend)
    : kernel_(std::move(kernel)),
      points_(std::move(points)),
      leading_(std::min(leading, points_.rows())),
      trend_(std::move(trend)) {}

GaussianProcess::GaussianProcess(Kernel kernel, Points points, Eigen::MatrixXd values,
                                 Eigen::Index leading, Trend trend)
    : GaussianProcess(std::move(kernel), std::move(points), leading, std::move(trend)) {
  factor_ = FactorOf(kernel_.LowerCovariances(points_), kernel_.parameters().noise);
  if (trend_.process) values.colwise() -= trend_.At(points_);
  SetWeights(std::move(values));
}

void GaussianProcess::AddTrend(const Points& at, Eigen::MatrixXd& mean) const {
  if (trend_.process) mean.rowwise() += trend_.At(at).transpose();
}

void GaussianProcess::SetWeights(Eigen::MatrixXd differences) {
  differences_ = std::move(differences);
  weights_ = factor_.triangularView<Eigen::Lower>().solve(differences_);
  factor_.transpose().triangularView<Eigen::Upper>().solveInPlace(weights_);
}

Posterior GaussianProcess::At(const Points& at) const {
  Eigen::MatrixXd covariances = kernel_.Covariances(points_, at);
  Posterior posterior{weights_.transpose() * covariances, {}};
  AddTrend(at, posterior.mean);
  factor_.triangularView<Eigen::Lower>().solveInPlace(covariances);
  posterior.variance =
      (kernel_.parameters().scale - covariances.colwise().squaredNorm().array()).max(0.0).matrix();
  return posterior;
}

Posterior GaussianProcess::CoarseAt(const Points& at) const {
  Eigen::MatrixXd covariances = kernel_.Covariances(points_, at);
  Posterior posterior{weights_.transpose() * covariances, {}};
  AddTrend(at, posterior.mean);
  Eigen::MatrixXd leading = covariances.topRows(leading_);
  factor_.topLeftCorner(leading_, leading_).triangularView<Eigen::Lower>().solveInPlace(leading);
  posterior.variance =
      (kernel_.parameters().scale - leading.colwise().squaredNorm().array()).max(0.0).matrix();
  return posterior;
}

GaussianProcess::Differentiable GaussianProcess::DifferentiableAt(const Points& at) const {
  Differentiable made;
  made.slopes.resize(points_.rows(), at.rows());
  made.weights.resize(points_.rows(), at.rows());
  for (Eigen::Index j = 0; j < at.rows(); ++j) {
    const auto values = kernel_.CovarianceAndSlope(kernel_.SquaredDistances(points_, at.row(j)));
    made.weights.col(j) = values.covariance;
    made.slopes.col(j) = values.slope;
  }
  made.posterior.mean = weights_.transpose() * made.weights;
  if (trend_.process) {
    made.of_trend = std::make_shared<const Differentiable>(trend_.process->DifferentiableAt(at));
    made.posterior.mean.rowwise() +=
        ((trend_.slope * made.of_trend->posterior.mean.row(0)).array() + trend_.offset).matrix();
  }
  factor_.triangularView<Eigen::Lower>().solveInPlace(made.weights);
  made.posterior.variance =
      (kernel_.parameters().scale - made.weights.colwise().squaredNorm().array()).max(0.0).matrix();
  factor_.transpose().triangularView<Eigen::Upper>().solveInPlace(made.weights);
  return made;
}

Point GaussianProcess::Gradient(const Points& at, const Differentiable& made, Eigen::Index j,
                                const Eigen::VectorXd& by_mean, double by_variance) const {
  // mean = k . weights_, variance = scale - k . K^-1 k, and d(d^2)/dx = 2 (x - x_i) / length^2.
  Eigen::VectorXd by_distance = weights_ * by_mean - 2 * by_variance * made.weights.col(j);
  by_distance.array() *= made.slopes.col(j).array();
  const double sum = by_distance.sum();
  Point gradient(points_.cols());
  for (Eigen::Index axis = 0; axis < points_.cols(); ++axis) {
    gradient[axis] = kernel_.unordered(axis)
                         ? 0.0
                         : 2 * kernel_.parameters().inverse_squared_lengths[axis] *
                               (sum * at(j, axis) - points_.col(axis).dot(by_distance));
  }
  if (made.of_trend) {
    const Eigen::VectorXd by_trend = Eigen::VectorXd::Constant(1, trend_.slope * by_mean.sum());
    gradient += trend_.process->Gradient(at, *made.of_trend, j, by_trend, 0);
  }
  return gradient;
}

Eigen::MatrixXd GaussianProcess::JointCovariance(const Points& at) const {
  Eigen::MatrixXd covariances = kernel_.Covariances(points_, at);
  factor_.triangularView<Eigen::Lower>().solveInPlace(covariances);
  Eigen::MatrixXd joint = kernel_.Covariances(at, at) - covariances.transpose() * covariances;
  joint.diagonal() = joint.diagonal().cwiseMax(0.0);
  return joint;
}

GaussianProcess GaussianProcess::Given(const Points& points, const Eigen::MatrixXd& values,
                                       double noise) const {
  const Eigen::Index n = points_.rows();
  const Eigen::Index m = points.rows();
  Points all(n + m, points_.cols());
  all << points_, points;
  GaussianProcess given(kernel_, std::move(all), leading_, trend_);
  // [L 0; B C] with B = (L^-1 k)^T and C C^T = k' + noise - B B^T.
  Eigen::MatrixXd below = kernel_.Covariances(points_, points);
  factor_.triangularView<Eigen::Lower>().solveInPlace(below);
  const Eigen::MatrixXd left = kernel_.Covariances(points, points) - below.transpose() * below;
  given.factor_.resize(n + m, n + m);
  given.factor_.topLeftCorner(n, n) = factor_;
  given.factor_.bottomLeftCorner(m, n) = below.transpose();
  given.factor_.bottomRightCorner(m, m) = FactorOf(left, noise);
  Eigen::MatrixXd all_values(n + m, values.cols());
  all_values << differences_.replicate(1, values.cols()), values;
  if (trend_.process) all_values.bottomRows(m).colwise() -= trend_.At(points);
  given.SetWeights(std::move(all_values));
  return given;
}

}  // namespace espalier::samplers::gp
