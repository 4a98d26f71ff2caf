#pragma once

#include <string>
#include <vector>

#include "adapters/optuna/dashboard/parameters.h"

namespace espalier::optuna_dashboard {

// The study's trials as CSV (RFC 4180), as Python's csv module writes them: number, state, final
// values, parameters and the users' attributes by name. `numbers`: of these trials only; empty: of
// all. NotFound if the study has none of them.
absl::StatusOr<std::string> TrialTable(const StudyCopy& study,
                                       const std::vector<std::int64_t>& numbers,
                                       DrawnParameters& parameters);

// A name for the file: without what file systems and headers give a meaning to.
std::string TrialTableName(const std::string& study_name);

}  // namespace espalier::optuna_dashboard
