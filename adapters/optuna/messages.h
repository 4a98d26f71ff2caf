#pragma once

#include <memory>
#include <string>

#include "storage.pb.h"
#include "tuner/core/state/change.h"
#include "tuner/core/state/event.h"

namespace espalier::optuna_storage {

// Between Optuna's messages and the tuner's own studies and trials.

// Trials of the pool appear with their parameters; PAUSED ones as RUNNING, and those that are
// COMPLETE without a value as FAIL.
optuna::Study ToMessage(const Study& study);
optuna::Trial ToMessage(const Trial& trial, const Study& study);

optuna::StudyDirection ToMessage(Direction direction);
optuna::TrialState ToMessage(TrialState state);

// The functions below refuse, with the code UNKNOWN as Optuna's own server: unknown enumerators,
// malformed JSON, malformed times. Its clients know no better code for them.
absl::StatusOr<TrialState> FromMessage(optuna::TrialState state);
absl::StatusOr<Suggestion> MakeSuggestion(const std::string& name, const std::string& distribution);
absl::Status CheckAttribute(const std::string& key, const std::string& value);
// Also refuses those that the service keeps for itself, with INVALID_ARGUMENT.
absl::Status CheckSystemAttribute(const std::string& key, const std::string& value);
absl::StatusOr<std::shared_ptr<const TrialTemplate>> FromMessage(const optuna::Trial& message);
absl::StatusOr<StudySpec> MakeSpec(const optuna::CreateNewStudyRequest& request);

// "2026-11-21 13:05:00.123456", in this host's time zone as Optuna's own server has it; empty for
// zero, which is no time.
std::string ToLocalTime(Time time);
absl::StatusOr<Time> FromLocalTime(const std::string& text);

}  // namespace espalier::optuna_storage
