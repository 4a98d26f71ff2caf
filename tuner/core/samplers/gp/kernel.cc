#include "tuner/core/samplers/gp/kernel.h"

namespace espalier::samplers::gp {

Eigen::ArrayXd Kernel::SquaredDifferences(const Points& points, Eigen::Index axis, double place,
                                          Eigen::Index from) const {
  const auto places = points.col(axis).tail(points.rows() - from).array();
  if (unordered(axis)) return (places != place).cast<double>();
  return (places - place).square();
}

Eigen::ArrayXd Kernel::SquaredDistances(const Points& points, const Point& to,
                                        Eigen::Index from) const {
  Eigen::ArrayXd distances = Eigen::ArrayXd::Zero(points.rows() - from);
  for (Eigen::Index axis = 0; axis < axes(); ++axis) {
    const auto places = points.col(axis).tail(points.rows() - from).array();
    const double weight = parameters_.inverse_squared_lengths[axis];
    if (unordered(axis)) {
      distances += weight * (places != to[axis]).cast<double>();
    } else {
      distances += weight * (places - to[axis]).square();
    }
  }
  return distances;
}

Eigen::ArrayXd Kernel::Covariance(const Eigen::ArrayXd& squared_distances) const {
  const Eigen::ArrayXd root = (5.0 * squared_distances).sqrt();
  return parameters_.scale * (-root).exp() * (1.0 + root + 5.0 / 3.0 * squared_distances);
}

Kernel::Values Kernel::CovarianceAndSlope(const Eigen::ArrayXd& squared_distances) const {
  const Eigen::ArrayXd root = (5.0 * squared_distances).sqrt();
  const Eigen::ArrayXd scaled = parameters_.scale * (-root).exp();
  return {scaled * (1.0 + root + 5.0 / 3.0 * squared_distances),
          -5.0 / 6.0 * scaled * (1.0 + root)};
}

Eigen::MatrixXd Kernel::Covariances(const Points& points, const Points& to) const {
  Eigen::MatrixXd covariances(points.rows(), to.rows());
  for (Eigen::Index j = 0; j < to.rows(); ++j) {
    covariances.col(j) = Covariance(SquaredDistances(points, to.row(j)));
  }
  return covariances;
}

Eigen::MatrixXd Kernel::LowerCovariances(const Points& points) const {
  const Eigen::Index n = points.rows();
  Eigen::MatrixXd covariances(n, n);
  for (Eigen::Index j = 0; j < n; ++j) {
    covariances.col(j).tail(n - j) = Covariance(SquaredDistances(points, points.row(j), j));
  }
  return covariances;
}

}  // namespace espalier::samplers::gp
