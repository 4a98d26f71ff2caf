#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "allocator/pool/pool.h"

namespace espalier {

// Whether a goodput model may be made of these numbers, which come from programs. InvalidArgument
// names the trial, the field, its value and what would be right.
absl::Status CheckModel(const std::string& trial, const ThroughputParams& params,
                        const GradientNoise& noise, const BatchBounds& bounds);

// Whether every number of the job, its models included, makes sense. As above.
absl::Status CheckJob(const Job& job);

struct JobRefusal {
  TrialId trial;
  std::string reason;
};

// Sees to it that no policy is shown bad numbers: a job that CheckJob refuses loses its models and
// known step times, has every number that is wrong set to the default, and stays where it is (one
// that waits may have its minimum). Returns why, in the order of the pool.
std::vector<JobRefusal> RefuseBadJobs(Pool& pool);

}  // namespace espalier
