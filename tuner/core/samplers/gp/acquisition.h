#pragma once

#include <Eigen/Core>
#include <memory>
#include <vector>

#include "tuner/core/samplers/gp/gaussian_process.h"

namespace espalier::samplers::gp {

// What the models' posteriors at one point are worth, as a logarithm: of the objectives, then of
// the constraints.
class Utility {
 public:
  virtual ~Utility() = default;

  // How it changes by what one model says.
  struct Slopes {
    Eigen::VectorXd by_mean;  // of each sample
    double by_variance = 0;
  };

  // At the j-th point of the posteriors. `slopes`, one a model, is filled unless it is null.
  virtual double Of(const std::vector<Posterior>& posteriors, Eigen::Index j,
                    std::vector<Slopes>* slopes) const = 0;
};

// The acquisition function: how much points are worth trying.
class Acquisition {
 public:
  // `objectives` is how many of the models are of an objective.
  Acquisition(std::vector<GaussianProcess> models, std::size_t objectives,
              std::unique_ptr<const Utility> utility);

  Eigen::VectorXd Values(const Points& at) const;

  // Estimates from above by few of the trials, for the choice of where to start.
  Eigen::VectorXd CoarseValues(const Points& at) const;

  struct WithGradients {
    Eigen::VectorXd values;
    Points gradients;
  };
  WithGradients ValuesWithGradients(const Points& at) const;

  // The mean over the objectives of the kernels' lengths: along these it changes alike on each
  // axis.
  Point Lengths() const;

 private:
  Eigen::VectorXd ValuesOf(const std::vector<Posterior>& posteriors, Eigen::Index points) const;

  std::vector<GaussianProcess> models_;
  std::size_t objectives_;
  std::unique_ptr<const Utility> utility_;
};

}  // namespace espalier::samplers::gp
