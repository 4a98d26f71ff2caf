#include "adapters/adaptdl/job_status.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/shortened.h"

namespace espalier::adaptdl {

namespace {

constexpr std::size_t kMostMessage = 1024;

std::string MomentOf(Time at) {
  if (at == Time{}) return "";
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixMicros(at.us), absl::UTCTimeZone());
}

std::string WhatItWaitsFor(const JobFacts& job, const PoolFacts& pool) {
  const std::string wants =
      absl::StrCat("waits for ", job.min_slots, job.min_slots == 1 ? " slot" : " slots");
  if (pool.slots >= job.min_slots) {
    return absl::StrCat(wants, " of the pool's ", pool.slots, " to be free");
  }
  return absl::StrCat(wants, ", the pool has ", pool.slots,
                      pool.trouble.empty() ? "" : absl::StrCat(": ", pool.trouble));
}

JobStatus Waiting(const JobFacts& job, const PoolFacts& pool) {
  return {.phase = JobPhase::kPending,
          .reason = "Waiting",
          .message = Shortened(WhatItWaitsFor(job, pool), kMostMessage)};
}

JobStatus Stopped(const JobFacts& job) {
  if (!job.allocation.empty()) return {.phase = JobPhase::kStopping};
  return FailedStatus("Stopped", job.reason, job.ended);
}

// Of one that has not ended.
JobStatus Living(const JobFacts& job, const PoolFacts& pool) {
  if (job.trial == TrialState::kRunning) {
    return {.phase = job.ready_replicas > 0 ? JobPhase::kRunning : JobPhase::kStarting};
  }
  return job.allocation.empty() ? Waiting(job, pool) : JobStatus{.phase = JobPhase::kStopping};
}

JobStatus ByState(const JobFacts& job, const PoolFacts& pool) {
  switch (job.trial) {
    case TrialState::kComplete:
      return {.phase = JobPhase::kSucceeded, .completion_timestamp = MomentOf(job.ended)};
    case TrialState::kFail:
    case TrialState::kPruned:
      return FailedStatus("ProgramFailed", job.trial_reason, job.ended);
    case TrialState::kWaiting:
    case TrialState::kRunning:
    case TrialState::kPaused:
      break;
  }
  switch (job.state) {
    case StudyState::kRunning:
      return Living(job, pool);
    case StudyState::kStopped:
    case StudyState::kComplete:  // by a limit, before its trial has ended
      return Stopped(job);
    case StudyState::kFailed:
      return FailedStatus("ProgramFailed", job.reason, job.ended);
  }
  return {};
}

}  // namespace

JobStatus FailedStatus(const std::string& reason, const std::string& message, Time at) {
  return {.phase = JobPhase::kFailed,
          .reason = reason,
          .message = Shortened(message, kMostMessage),
          .completion_timestamp = MomentOf(at)};
}

JobStatus StatusOf(const JobFacts& job, const PoolFacts& pool) {
  JobStatus status = ByState(job, pool);
  if (!Ended(status.phase)) {
    status.allocation = job.allocation;
    status.ready_replicas = job.ready_replicas;
  }
  status.group = job.restarts;
  status.attempt_count = job.started ? 1 + job.restarts : 0;
  status.study = job.study;
  return status;
}

}  // namespace espalier::adaptdl
