#pragma once

#include <cstddef>
#include <vector>

#include "tuner/analysis/study_copy.h"

namespace espalier {

// A complete trial whose value is better than all that were complete before it.
struct Improvement {
  Time at;  // when it ended
  TrialId trial;
  double value = 0;
};

// In the order of time, one a moment: how the best value of an objective came to be. Values that
// are not finite are none, nor are those of trials that break a constraint. Of more than `most` so
// many, evenly, the first and the last among them. Requires most >= 2.
std::vector<Improvement> BestOverTime(const std::vector<TrialCopy>& trials, std::size_t objective,
                                      Direction direction, std::size_t most);

}  // namespace espalier
