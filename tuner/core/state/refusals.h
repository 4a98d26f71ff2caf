#pragma once

#include <string>

#include "absl/status/status.h"
#include "tuner/core/state/study.h"

// Errors that the core, and the code that reads its state, return in several places.
namespace espalier {

absl::Status NoStudy(StudyId id);
absl::Status NoStudy(const std::string& name);
absl::Status NoTrial(TrialId id);

// FAILED_PRECONDITION, by which Optuna's clients tell that the trial has ended.
absl::Status HasEnded(const Trial& trial);

// Refuses new trials of a study that is stopped or complete.
absl::Status NotRunning(const Study& study);

inline constexpr std::int64_t kMaxReportsPerTrial = 1'000'000;
absl::Status HasReportedTheMost(const Trial& trial);

// Why a trial of the pool has failed that told this, which is not finite, as its final value.
std::string NoFiniteEnd(double value);

// The largest step of a value: every whole number up to it is a double, as JSON's numbers are.
inline constexpr std::int64_t kMaxStep = std::int64_t{1} << 53;
absl::Status CheckStep(std::int64_t step);

// Refuses a limit of costs without a price to go by. The message names the key of the study file.
absl::Status CheckCostLimit(const StudySpec& spec);

// Refuses a client that would set what the service keeps for itself (private_attributes.h).
absl::Status PrivateAttribute(const std::string& key);

// Refuses a client that would create, run or end a trial of such a study.
absl::Status RunsOnThePool(const Study& study);

}  // namespace espalier
