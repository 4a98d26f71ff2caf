#pragma once

#include <stop_token>
#include <vector>

#include "tuner/core/samplers/gp/acquisition.h"
#include "tuner/core/samplers/gp/gp_space.h"

namespace espalier::samplers::gp {

// Searches for maxima of the acquisition function from several points at once, so that the model is
// asked about all of them in one product of matrices. Each search alternates steps along the
// gradient over the continuous axes with a search of each other axis by itself, until a round
// changes nothing (Optuna's; its options and small grids are tried one by one, larger grids at
// ever closer values around the best).
class LocalSearch {
 public:
  // `starts`, one a row, are not masked: what is inactive has the place that it gets once an option
  // activates it. The others must outlive this.
  LocalSearch(const GpSpace& space, const Acquisition& acquisition, Points starts);

  void Run(const std::stop_token& stop);

  const Points& points() const { return points_; }  // not masked
  const Eigen::VectorXd& values() const { return values_; }

 private:
  using Indices = std::vector<Eigen::Index>;  // of the searches

  // Of one search on one axis: values that were not looked at between those that were.
  struct Window {
    Eigen::Index search;
    std::int64_t low;
    std::int64_t high;
    std::int64_t best;  // the number of the value at which the search is
  };

  // Returns those of the searches that got further.
  Indices AscendContinuous(const Indices& searches, const std::stop_token& stop);
  Indices SearchAxis(Eigen::Index axis, const Indices& searches, const std::stop_token& stop);
  // Evaluates values of the windows, narrows them, and drops those in which nothing is left.
  void LookInto(Eigen::Index axis, std::vector<Window>& windows);
  Points Masked(const Points& points) const;

  const GpSpace& space_;
  const Acquisition& acquisition_;
  const Point lengths_;
  std::vector<Eigen::Index> continuous_;
  std::vector<Eigen::Index> others_;
  Points points_;
  Eigen::VectorXd values_;
};

}  // namespace espalier::samplers::gp
