#pragma once

#include <vector>

#include "adapters/optuna/dashboard/study_reader.h"

namespace espalier::optuna_dashboard {

// Numbers of the best complete trials, ascending: one where there is one direction (the first of
// equals), the Pareto front where there are more. Trials with NaN, or with another count of values
// than the study has directions, are not compared.
std::vector<std::int64_t> BestTrials(const std::vector<ShownTrial>& trials,
                                     const std::vector<Direction>& directions);

}  // namespace espalier::optuna_dashboard
