#pragma once

#include <utility>
#include <vector>

#include "tuner/core/samplers/gp/acquisition.h"
#include "tuner/core/samplers/gp/boxes.h"
#include "tuner/core/samplers/gp/sampled_improvement.h"

namespace espalier::samplers::gp {

// The logarithm of the expected hypervolume that a candidate adds to the front of several
// objectives (Daulton et al. 2020, eq. 1; logarithm as in Ament et al. 2023), as the mean over
// draws.
class HypervolumeImprovement final : public Utility {
 public:
  struct Draws {
    std::vector<Boxes> boxes;  // above the front: one for all draws, or, with fantasies, one a draw
    Eigen::MatrixXd normals;   // a row for each draw, a column for each model that is drawn from
    // Whether constraints are drawn too, so that in each draw the hypervolume counts as far as it
    // is feasible; otherwise its logarithm has that of the probability added.
    bool of_constraints = false;
  };

  // `thresholds` of the constraints, which are the models after the objectives.
  HypervolumeImprovement(std::size_t objectives, Draws draws, std::vector<double> thresholds);

  double Of(const std::vector<Posterior>& posteriors, Eigen::Index j,
            std::vector<Slopes>* slopes) const override;

 private:
  struct Volume {
    double sum;                   // over the boxes
    Eigen::RowVectorXd by_value;  // its derivative by each objective's value
  };
  Volume VolumeAt(const Eigen::RowVectorXd& values, const Boxes& boxes, bool with_slope) const;

  Eigen::Index objectives_;
  Draws draws_;
  std::vector<double> thresholds_;
};

// Values of objectives, a row for each trial, and those that running trials have in one draw, if
// they keep to the constraints there: `draws` of the objectives, then of the constraints.
Eigen::MatrixXd WithRunning(const Eigen::MatrixXd& values,
                            const std::vector<SampledImprovement::OfDraws>& draws,
                            const std::vector<double>& thresholds, Eigen::Index draw);

// Where no trial keeps to the constraints: that they are kept is all that counts.
class Feasibility final : public Utility {
 public:
  // `first`: the first model of a constraint.
  Feasibility(std::size_t first, std::vector<double> thresholds)
      : first_(first), thresholds_(std::move(thresholds)) {}

  double Of(const std::vector<Posterior>& posteriors, Eigen::Index j,
            std::vector<Slopes>* slopes) const override;

 private:
  std::size_t first_;
  std::vector<double> thresholds_;
};

}  // namespace espalier::samplers::gp
