#pragma once

#include <utility>
#include <vector>

#include "tuner/core/samplers/gp/acquisition.h"
#include "tuner/core/samplers/gp/fantasies.h"

namespace espalier::samplers::gp {

// Log of the probability that the models from `first` on are at least at their thresholds, each by
// itself. Adds to the slopes, if there are any.
double LogFeasibility(const std::vector<double>& thresholds,
                      const std::vector<Posterior>& posteriors, std::size_t first, Eigen::Index j,
                      std::vector<Utility::Slopes>* slopes);

// The logarithm of the expected improvement on one objective, plus that of the probability that all
// constraints are kept (Gardner et al. 2014).
class ExpectedImprovement final : public Utility {
 public:
  // The best known value; -infinity: no trial keeps to the constraints, and they alone count.
  ExpectedImprovement(double best, std::vector<double> thresholds)
      : best_(best), thresholds_(std::move(thresholds)) {}

  double Of(const std::vector<Posterior>& posteriors, Eigen::Index j,
            std::vector<Slopes>* slopes) const override;

 private:
  double best_;
  std::vector<double> thresholds_;
};

}  // namespace espalier::samplers::gp
