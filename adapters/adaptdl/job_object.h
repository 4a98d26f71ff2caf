#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace espalier::adaptdl {

// As AdaptDL's scheduler names them.
enum class JobPhase {
  kNone,  // nobody has written one yet
  kPending,
  kStarting,
  kRunning,
  kStopping,
  kSucceeded,
  kFailed,
};
std::string_view ToString(JobPhase phase);

constexpr bool Ended(JobPhase phase) {
  return phase == JobPhase::kSucceeded || phase == JobPhase::kFailed;
}

// The status of an AdaptDLJob: AdaptDL's fields, and the last two, which are ours.
struct JobStatus {
  JobPhase phase = JobPhase::kNone;
  std::string reason{};                   // one word; empty: none is needed
  std::string message{};                  // for people
  std::vector<std::string> allocation{};  // the node of each replica, by name
  std::int64_t ready_replicas = 0;        // whose processes run
  std::int64_t group = 0;                 // how often it was started again
  std::int64_t attempt_count = 0;         // how often it was started
  std::string completion_timestamp{};     // as Kubernetes writes moments; empty: has not ended
  std::string study{};                    // that runs it
  std::int64_t observed_generation = 0;   // of the object, when it was taken up

  friend bool operator==(const JobStatus&, const JobStatus&) = default;
};

// An object of kind AdaptDLJob, as the API server has it.
struct JobObject {
  std::string name;
  std::string uid;
  std::string version;          // changes with every change of the object
  std::int64_t generation = 0;  // changes with its spec
  bool deleted = false;         // it will be removed once its observers have noticed
  std::string job;              // its name and its spec, for ReadAdaptDLJob
  JobStatus status;
};
struct JobPage {
  std::vector<JobObject> jobs;
  std::string next;  // from where the list goes on; empty: that was all
};

// A part of a list of AdaptDLJobs.
absl::StatusOr<JobPage> ReadJobs(const std::string& body);

// What makes the status of the object this one, as a JSON merge patch which is refused where the
// object has changed since.
std::string StatusPatch(const JobObject& job, const JobStatus& status);

}  // namespace espalier::adaptdl
