#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace espalier {

struct ExportedStudy {
  std::string name;
  std::int64_t trials = 0;
  // Trials that are FAIL in the file though they are not here:
  std::int64_t nan_values = 0;     // whose final value is NaN
  std::int64_t without_value = 0;  // of the pool, COMPLETE without a value
};

// Writes studies of a database of ours (all, if none is named) to a new SQLite file that Optuna
// 5.0.0 opens. A service may have the database open. Ids are kept. Studies of the pool come with
// their search space as Optuna's distributions, or with distributions of what was observed where
// there is none; their PAUSED trials as RUNNING.
//
// Optuna's files have no place for a final value that is NaN: such a trial is FAIL and has none, as
// Optuna itself records who tells NaN. So is a trial of the pool that completed without a value:
// Optuna's COMPLETE trials have one. A parameter that is NaN is refused.
absl::StatusOr<std::vector<ExportedStudy>> ExportOptuna(const std::string& from,
                                                        const std::string& to,
                                                        const std::vector<std::string>& names);

}  // namespace espalier
