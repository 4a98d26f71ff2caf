#pragma once

#include <Eigen/Core>
#include <memory>

#include "tuner/core/samplers/gp/kernel.h"

namespace espalier::samplers::gp {

// What a Gaussian process says of points, one a column.
struct Posterior {
  Eigen::MatrixXd mean;         // a row for each sample of the observed values
  Eigen::RowVectorXd variance;  // of the function, without the noise; at least 0
};

class GaussianProcess;

// What is expected of values before any is observed: offset + slope times the mean of a process
// that was made of others. 0 everywhere without one.
struct Trend {
  std::shared_ptr<const GaussianProcess> process{};
  double offset = 0;
  double slope = 0;

  Eigen::VectorXd At(const Points& at) const;
};

// A Gaussian process given observed values (Rasmussen and Williams 2006, algorithm 2.1). The values
// may be several samples of them, of which one factorisation serves all. With a trend it is of what
// values differ from that by.
class GaussianProcess {
 public:
  // `values`: a row for each point, a column for each sample. `leading`: how many of the first
  // points the coarse variances are made of.
  GaussianProcess(Kernel kernel, Points points, Eigen::MatrixXd values, Eigen::Index leading,
                  Trend trend = {});

  const Kernel& kernel() const { return kernel_; }
  Eigen::Index samples() const { return weights_.cols(); }

  Posterior At(const Points& at) const;

  // The means, and variances given the leading points alone, which are no smaller.
  Posterior CoarseAt(const Points& at) const;

  // A posterior with what its gradients are made of.
  struct Differentiable {
    Posterior posterior;
    Eigen::MatrixXd slopes;   // of the covariances by d^2: a row for each observed point
    Eigen::MatrixXd weights;  // of them in the variance: the inverse of K times covariances
    std::shared_ptr<const Differentiable> of_trend{};
  };
  Differentiable DifferentiableAt(const Points& at) const;

  // The gradient by the j-th point's places of what changes by `by_mean` (of each sample) and
  // `by_variance`; 0 on axes without order.
  Point Gradient(const Points& at, const Differentiable& made, Eigen::Index j,
                 const Eigen::VectorXd& by_mean, double by_variance) const;

  // The covariance of the function at points, given what was observed.
  Eigen::MatrixXd JointCovariance(const Points& at) const;

  // The process once the function's values at further points are known but for a variance of
  // `noise`: `values` has a row for each and a column for each sample. Requires one sample so far.
  GaussianProcess Given(const Points& points, const Eigen::MatrixXd& values, double noise) const;

 private:
  GaussianProcess(Kernel kernel, Points points, Eigen::Index leading, Trend trend);

  void SetWeights(Eigen::MatrixXd differences);
  void AddTrend(const Points& at, Eigen::MatrixXd& mean) const;

  Kernel kernel_;
  Points points_;
  Eigen::Index leading_;
  Trend trend_;
  Eigen::MatrixXd differences_;  // of values from the trend
  Eigen::MatrixXd factor_;       // L of L L^T = K + noise, in the lower triangle
  Eigen::MatrixXd weights_;      // (K + noise)^-1 differences
};

// L of L L^T in the lower triangle of `matrix`, of which only that is read; false where it has
// none.
bool FactorInPlace(Eigen::MatrixXd& matrix);

// L of L L^T = matrix + noise, of which only the lower triangle is read; where rounding leaves it
// without a factor, with the least of 10, 100, ... times the noise that has one.
Eigen::MatrixXd FactorOf(const Eigen::MatrixXd& matrix, double noise);

}  // namespace espalier::samplers::gp
