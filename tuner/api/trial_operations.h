#pragma once

#include "tuner.pb.h"
#include "tuner/api/tuner.h"

namespace espalier::api {

// Operations on trials that clients run by themselves; otherwise as those of operations.h.

// A repeated request (with the same request_key) gets the trial that the first one got.
absl::StatusOr<v1::TrialRecord> Ask(Tuner& tuner, const v1::AskRequest& request);
absl::StatusOr<v1::TrialRecord> Enqueue(Tuner& tuner, const v1::EnqueueRequest& request);
absl::StatusOr<v1::Verdict> Report(Tuner& tuner, const v1::ReportRequest& request);
absl::StatusOr<v1::Verdict> ShouldPrune(Tuner& tuner, const v1::TrialId& request);
absl::StatusOr<v1::TrialRecord> CancelTrial(Tuner& tuner, const v1::CancelTrialRequest& request);
absl::StatusOr<v1::TellResponse> Tell(Tuner& tuner, const v1::TellRequest& request);
absl::StatusOr<v1::TrialRecord> SetAttributes(Tuner& tuner,
                                              const v1::SetAttributesRequest& request);
absl::StatusOr<v1::TrialRecord> GetTrial(Tuner& tuner, const v1::TrialId& request);
absl::StatusOr<v1::TrialRecord> GetBestTrial(Tuner& tuner, const v1::StudyName& request);

}  // namespace espalier::api
