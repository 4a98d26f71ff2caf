#pragma once

#include "absl/status/status.h"
#include "tuner/core/state/study.h"

// What the core answers in several places where it does not do what it is asked for.
namespace espalier {

absl::Status NoStudy(StudyId id);
absl::Status NoTrial(TrialId id);

// FAILED_PRECONDITION, by which Optuna's clients tell that the trial has ended.
absl::Status HasEnded(const Trial& trial);

// To new trials of a study that is stopped or complete.
absl::Status NotRunning(const Study& study);

inline constexpr std::int64_t kMaxReportsPerTrial = 1'000'000;
absl::Status HasReportedTheMost(const Trial& trial);

// To a client that would create, run or end a trial of such a study.
absl::Status RunsOnThePool(const Study& study);

}  // namespace espalier
