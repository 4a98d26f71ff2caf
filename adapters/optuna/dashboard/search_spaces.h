#pragma once

#include <string>
#include <utility>
#include <vector>

#include "adapters/optuna/dashboard/parameters.h"

namespace espalier::optuna_dashboard {

// What the trials of a study have in common, as the dashboard asks for it.
struct StudyDigest {
  // By name. Ranges of the same kind (class, step, scale) are one that holds them all.
  std::vector<DrawnParameters::Entry> union_space;
  std::vector<DrawnParameters::Entry> intersection_space;     // of what every trial has
  std::vector<std::pair<std::string, bool>> user_attributes;  // and whether each is a number
  bool has_reports = false;
};

// Failed trials count for their attributes only.
StudyDigest Digest(const std::vector<TrialCopy>& trials, DrawnParameters& parameters);

}  // namespace espalier::optuna_dashboard
