#pragma once

#include <cstdint>
#include <vector>

#include "tuner/analysis/study_copy.h"
#include "tuner/api/tuner.h"

namespace espalier::optuna_dashboard {

inline constexpr std::size_t kTrialsInSlice = 2000;  // read between two commits, at most

// For a list: without what only trials need.
absl::StatusOr<std::vector<StudyHead>> ReadStudies(Tuner& tuner);
absl::StatusOr<StudyHead> ReadHead(Tuner& tuner, StudyId id);
absl::StatusOr<StudyCopy> ReadStudy(Tuner& tuner, StudyId id, std::int64_t full_from);
absl::StatusOr<TrialCopy> ReadTrial(Tuner& tuner, TrialId id);

}  // namespace espalier::optuna_dashboard
