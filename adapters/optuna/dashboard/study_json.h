#pragma once

#include <string>
#include <vector>

#include "adapters/optuna/dashboard/attributes.h"
#include "adapters/optuna/dashboard/search_spaces.h"
#include "adapters/optuna/dashboard/study_reader.h"
#include "tuner/analysis/importance.h"

namespace espalier::optuna_dashboard {

// The JSON that optuna-dashboard 0.21's front end reads.

std::string SummaryJson(const StudyHead& study);
std::string SummariesJson(const std::vector<StudyHead>& studies);

// `best`: in full, also those that are not among the trials from `after` on.
std::string DetailJson(const StudyCopy& study, std::int64_t after, const StudyDigest& digest,
                       const std::vector<TrialCopy>& best, DrawnParameters& parameters);

std::string ImportancesJson(const std::vector<std::vector<Importance>>& by_objective);
std::string ArtifactsJson(const std::vector<Artifact>& artifacts);

}  // namespace espalier::optuna_dashboard
