#pragma once

#include <map>
#include <string>
#include <string_view>

namespace espalier {

// Among a trial's system attributes (JSON texts by key), where Optuna's
// report_cross_validation_scores leaves a list of numbers.
inline constexpr std::string_view kCrossValidationScores = "terminator:cv_scores";

// The standard error of their mean, as of k-fold cross-validation: the root of (1/k + 1/(k-1))
// times the mean square of their deviations (Nadeau and Bengio 2003, with a test set of the k-th
// part; Makarova et al., AutoML 2022, section 4). NaN: there are none, only one, or what is there
// is no list of finite numbers.
double CrossValidationError(const std::map<std::string, std::string>& system_attributes);

}  // namespace espalier
