#pragma once

#include <vector>

#include "tuner/analysis/study_copy.h"

namespace espalier {

// Numbers of the best complete trials, ascending: one where there is one direction (the first of
// equals), the Pareto front where there are more. Trials with NaN, or with another count of values
// than the study has directions, are not compared, nor are those that break a constraint.
std::vector<std::int64_t> BestTrials(const std::vector<TrialCopy>& trials,
                                     const std::vector<Direction>& directions);

}  // namespace espalier
