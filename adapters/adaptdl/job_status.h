#pragma once

#include <string>
#include <vector>

#include "adapters/adaptdl/job_object.h"
#include "base/clock.h"
#include "tuner/core/state/study.h"

namespace espalier::adaptdl {

// What the tuner has of one job: a study of one trial, which may not be made yet.
struct JobFacts {
  std::string study;
  StudyState state = StudyState::kRunning;
  std::string reason{};  // why the study stopped or ended
  TrialState trial = TrialState::kWaiting;
  std::string trial_reason{};
  bool started = false;
  int restarts = 0;
  std::vector<std::string> allocation{};  // the node of each replica, by name
  int ready_replicas = 0;                 // whose processes run
  int min_slots = 1;
  Time ended{};  // or stopped; zero: neither
};
struct PoolFacts {
  int slots = 0;
  std::string trouble{};  // what keeps the engine from giving more; empty: nothing
};

// The status that says so. Its observed_generation is for the caller to say.
JobStatus StatusOf(const JobFacts& job, const PoolFacts& pool);

// The status of a job for which no study will be made.
JobStatus FailedStatus(const std::string& reason, const std::string& message, Time at);

}  // namespace espalier::adaptdl
