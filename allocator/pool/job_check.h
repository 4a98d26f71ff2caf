#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "allocator/pool/pool.h"

namespace espalier {

// Checks whether a goodput model may be made of these numbers, which come from programs.
// InvalidArgument names the trial, the field, its value and what would be right.
absl::Status CheckModel(const std::string& trial, const ThroughputParams& params,
                        const GradientNoise& noise, const BatchBounds& bounds);

// Checks whether every number of the job, its models included, makes sense, with errors as above.
absl::Status CheckJob(const Job& job);

struct JobRefusal {
  TrialId trial;
  std::string reason;
};

// Makes sure that no policy is shown bad numbers: a job that CheckJob refuses loses its models and
// known step times, has every wrong number set to the default, and stays where it is (a waiting job
// may have its minimum). Returns the reasons, in the order of the pool.
std::vector<JobRefusal> RefuseBadJobs(Pool& pool);

}  // namespace espalier
