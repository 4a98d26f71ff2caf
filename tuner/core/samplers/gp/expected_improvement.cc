#include "tuner/core/samplers/gp/expected_improvement.h"

#include <cmath>

#include "tuner/core/samplers/gp/improvement.h"

namespace espalier::samplers::gp {
namespace {

Utility::Slopes SlopesOf(const Improvement& improvement) {
  return {Eigen::VectorXd::Constant(1, improvement.by_mean), improvement.by_variance};
}

}  // namespace

double LogFeasibility(const std::vector<double>& thresholds,
                      const std::vector<Posterior>& posteriors, std::size_t first, Eigen::Index j,
                      std::vector<Utility::Slopes>* slopes) {
  double sum = 0;
  for (std::size_t i = 0; i < thresholds.size(); ++i) {
    const Posterior& of_model = posteriors[first + i];
    const Improvement above = LogProbabilityAbove(
        of_model.mean(0, j), of_model.variance[j] + kStabilizingVariance, thresholds[i]);
    sum += above.value;
    if (slopes != nullptr) (*slopes)[first + i] = SlopesOf(above);
  }
  return sum;
}

double ExpectedImprovement::Of(const std::vector<Posterior>& posteriors, Eigen::Index j,
                               std::vector<Slopes>* slopes) const {
  Improvement improvement{0, 0, 0};
  if (std::isfinite(best_)) {
    const Posterior& objective = posteriors.front();
    improvement = LogExpectedImprovement(objective.mean(0, j),
                                         objective.variance[j] + kStabilizingVariance, best_);
  }
  if (slopes != nullptr) slopes->front() = SlopesOf(improvement);
  return improvement.value + LogFeasibility(thresholds_, posteriors, 1, j, slopes);
}

}  // namespace espalier::samplers::gp
