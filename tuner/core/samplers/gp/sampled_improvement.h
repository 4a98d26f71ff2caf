#pragma once

#include <vector>

#include "tuner/core/samplers/gp/acquisition.h"

namespace espalier::samplers::gp {

// How softly a constraint holds in a draw: a logistic step of this width.
inline constexpr double kFeasibilityWidth = 1e-2;

// In one draw, the logarithm of how much a value improves on the best, as far as doubles tell.
double LogImprovement(double value, double best);
// In one draw, the logarithm of how far a constraint's value is above its threshold.
double LogSoftlyAbove(double value, double threshold);

// log sum exp of numbers that may be -infinity.
double LogSumExp(const Eigen::VectorXd& logs);

// The logarithm of the expected improvement that a candidate and the running trials bring together
// (qLogEI, Ament et al. 2023, eq. 10), as the mean over draws of the models with fantasies. With
// constraints, of that of the feasible ones among them.
class SampledImprovement final : public Utility {
 public:
  struct OfDraws {
    Eigen::MatrixXd
        running;  // the values of running trials: a row for each, a column for each draw
    Eigen::VectorXd normals;  // of the candidate, one a draw
  };

  // `draws`: of the objective, then of each constraint. `best` as of ExpectedImprovement.
  SampledImprovement(double best, std::vector<double> thresholds, std::vector<OfDraws> draws);

  double Of(const std::vector<Posterior>& posteriors, Eigen::Index j,
            std::vector<Slopes>* slopes) const override;

 private:
  double best_;
  std::vector<double> thresholds_;
  std::vector<OfDraws> draws_;
  Eigen::VectorXd running_;  // by draw: what the best of the running trials brings
};

}  // namespace espalier::samplers::gp
