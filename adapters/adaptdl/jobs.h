#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "adapters/adaptdl/job_object.h"
#include "adapters/adaptdl/job_status.h"
#include "tuner/api/tuner.h"
#include "tuner/server/engines/kubernetes_api.h"

namespace espalier::adaptdl {

// The AdaptDLJobs of a namespace of Kubernetes as studies of one trial. Objects and studies are
// compared again and again, and nothing else is relied on: a study says by the request key that it
// was made with which object it is of (RequestKeyOf), so that any service on the same database goes
// on with it, and none runs a job twice.
//
//   an object without a study      is taken up, once
//   a study without its object     is stopped, with a checkpoint
//   an object that was edited      goes on as it was taken up, and says so
//   one that cannot be taken up    is Failed, and taken up when it was edited
//
// One thread.
class Jobs {
 public:
  Jobs(ApiServer server, Tuner& tuner);

  // One comparison. An error, in a line for people: something could not be read or written, and is
  // tried again with the next one. `goes_on` is asked between two jobs.
  absl::Status Compare(const std::function<bool()>& goes_on);

 private:
  // What the tuner has, by the uid of the object.
  struct Seen {
    std::map<std::string, JobFacts> jobs;
    PoolFacts pool;
  };

  absl::StatusOr<std::vector<JobObject>> List();
  absl::StatusOr<std::vector<JobObject>> ListOnce();
  absl::StatusOr<Seen> ReadTuner();
  absl::StatusOr<JobStatus> StatusFor(const JobObject& job, const Seen& seen);
  absl::StatusOr<JobStatus> TakeUp(const JobObject& job, const PoolFacts& pool);
  absl::Status Stop(const JobFacts& job);
  absl::Status Write(const JobObject& job, const JobStatus& status);
  std::string RequestKeyOf(const std::string& uid) const;

  KubernetesApi api_;
  Tuner& tuner_;
};

}  // namespace espalier::adaptdl
