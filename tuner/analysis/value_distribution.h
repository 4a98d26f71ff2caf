#pragma once

#include <cstddef>
#include <vector>

#include "tuner/analysis/study_copy.h"

namespace espalier {

// Of the final values of an objective: what share of the complete trials has at most this one.
struct ValueShare {
  double value = 0;
  double share = 0;  // above 0, to 1
};

// The empirical distribution of the finite values of complete trials, ascending, with one point for
// each different value; of more than `most_points` so many, evenly by share, the least and the
// greatest among them. Requires most_points >= 2.
std::vector<ValueShare> ValueDistribution(const std::vector<TrialCopy>& trials,
                                          std::size_t objective, std::size_t most_points);

}  // namespace espalier
