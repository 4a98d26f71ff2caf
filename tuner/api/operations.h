#pragma once

#include "tuner.pb.h"
#include "tuner/api/tuner.h"

namespace espalier::api {

// One function for each operation of the public protocol; gRPC and REST both call these. Each waits
// for the owner of the core, and returns the core's own error where it has one. Operations on
// trials that clients run are in trial_operations.h.

inline constexpr std::size_t kMaxStudyJson = 1 << 20;  // bytes
inline constexpr int kRecentDecisions = 200;  // sent where only active trials are asked for

absl::StatusOr<v1::Study> CreateStudy(Tuner& tuner, const v1::CreateStudyRequest& request);
// As CreateStudy, and also says whether the study was there before.
struct CreatedStudy {
  v1::Study study;
  bool existed = false;
};
absl::StatusOr<CreatedStudy> CreateOrFindStudy(Tuner& tuner, const v1::CreateStudyRequest& request);
absl::StatusOr<v1::ListStudiesResponse> ListStudies(Tuner& tuner,
                                                    const v1::ListStudiesRequest& request);
// With active_only, the decisions are limited to the newest kRecentDecisions, too.
absl::StatusOr<v1::StudyDetails> GetStudy(Tuner& tuner, const v1::GetStudyRequest& request);
absl::StatusOr<v1::Study> StopStudy(Tuner& tuner, const v1::StudyName& request);
absl::StatusOr<v1::Study> ResumeStudy(Tuner& tuner, const v1::ResumeStudyRequest& request);
// Returns the study as it was.
absl::StatusOr<v1::Study> DeleteStudy(Tuner& tuner, const v1::StudyName& request);
absl::StatusOr<v1::Trial> PinTrial(Tuner& tuner, const v1::PinTrialRequest& request);
absl::StatusOr<v1::Node> DrainNode(Tuner& tuner, const v1::DrainNodeRequest& request);
absl::StatusOr<v1::Pool> GetPool(Tuner& tuner, const v1::GetPoolRequest& request);
absl::StatusOr<v1::Pool> SetPoolPolicy(Tuner& tuner, const v1::SetPoolPolicyRequest& request);

}  // namespace espalier::api
