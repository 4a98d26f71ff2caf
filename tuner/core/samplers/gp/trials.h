#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <optional>
#include <vector>

#include "tuner/core/samplers/gp/gp_space.h"
#include "tuner/core/samplers/sampler.h"

namespace espalier::samplers::gp {

// Of many trials, so many at most make the model: the best ones, and of the others those that lie
// farthest from all that are taken (Gonzalez 1985). A model of more would take seconds.
inline constexpr Eigen::Index kMostTrials = 2000;
// So many of them, chosen likewise, come first: kernels are fitted to these, and they make the
// coarse variances.
inline constexpr Eigen::Index kLeadingTrials = 200;

// Of running trials, the last so many are taken into account.
inline constexpr std::ptrdiff_t kMostRunning = 100;
// Of trials that were pruned, with several objectives: each costs as much as one that runs.
inline constexpr std::ptrdiff_t kMostPruned = 20;

// What trials told of one constraint.
struct ConstraintValues {
  Points points;           // of the trials that told it
  Eigen::VectorXd values;  // standardised; those at least at the threshold keep to it
  double threshold = 0;
  Eigen::Index leading = 0;  // of the points
};

// Trials as the model takes them: values are standardised, and larger is better.
struct GpTrials {
  Points points;
  Eigen::MatrixXd values;      // a row for each trial, a column for each objective
  std::vector<bool> feasible;  // by trial
  std::vector<ConstraintValues> constraints;
  Eigen::Index leading = 0;  // how many come first, see above
  Points running;
};

struct Standardised {
  Eigen::VectorXd values;
  double zero;  // what 0 has become
};

// Mean 0 and variance 1, whatever their size.
Standardised Standardise(const Eigen::VectorXd& values);

// Where the running trials are, and with several objectives, before them, those that were pruned:
// what they would have come to is for the model to tell, and another one there is worth less.
Points RunningOf(const SamplerInput& input, const GpSpace& space);

// nullopt if fewer than `least` trials have a value of each objective.
//
// A trial that failed, or whose value does not count, counts as bad as the worst that completed;
// one that was pruned counts with its last value, but never as better than the median of those that
// completed. With several objectives one that was pruned has no values, and stands among `running`.
std::optional<GpTrials> TrialsOf(const SamplerInput& input, const GpSpace& space, std::size_t least,
                                 bool merge_repeated);

}  // namespace espalier::samplers::gp
