#pragma once

#include <Eigen/Core>
#include <utility>
#include <vector>

#include "tuner/core/samplers/gp/gp_space.h"

namespace espalier::samplers::gp {

// What is fitted to the trials. Values of the model are standardised, so that scale and noise are
// in units of their variance.
struct KernelParameters {
  Eigen::VectorXd inverse_squared_lengths;  // by axis; the cube's side is 1
  double scale = 1;                         // the variance of the function
  double noise = 1;                         // of what is observed around it
};

// Matérn's covariance of smoothness 5/2 with a length for each axis (Rasmussen and Williams 2006,
// eq. 4.17 and 5.1):
//   k(d) = scale (1 + sqrt(5) d + 5/3 d^2) exp(-sqrt(5) d),
// d^2 the sum over the axes of squared differences over squared lengths. Options that differ are at
// distance 1.
class Kernel {
 public:
  Kernel(std::vector<bool> unordered, KernelParameters parameters)
      : unordered_(std::move(unordered)), parameters_(std::move(parameters)) {}

  const KernelParameters& parameters() const { return parameters_; }
  Eigen::Index axes() const { return parameters_.inverse_squared_lengths.size(); }
  bool unordered(Eigen::Index axis) const { return unordered_[static_cast<std::size_t>(axis)]; }

  // On one axis, the squared differences of points `from`, ... to one place, without a length.
  Eigen::ArrayXd SquaredDifferences(const Points& points, Eigen::Index axis, double place,
                                    Eigen::Index from = 0) const;

  // d^2 of points `from`, ... to one.
  Eigen::ArrayXd SquaredDistances(const Points& points, const Point& to,
                                  Eigen::Index from = 0) const;

  // By squared distances: k, and its derivative by d^2, which is -5/6 scale (1 + sqrt(5) d)
  // exp(-sqrt(5) d).
  struct Values {
    Eigen::ArrayXd covariance;
    Eigen::ArrayXd slope;
  };
  Eigen::ArrayXd Covariance(const Eigen::ArrayXd& squared_distances) const;
  Values CovarianceAndSlope(const Eigen::ArrayXd& squared_distances) const;

  // Of all points with each of `to`: a row for a point, a column for each of `to`.
  Eigen::MatrixXd Covariances(const Points& points, const Points& to) const;
  // Of points among themselves; only the lower triangle is filled.
  Eigen::MatrixXd LowerCovariances(const Points& points) const;

 private:
  std::vector<bool> unordered_;
  KernelParameters parameters_;
};

}  // namespace espalier::samplers::gp
