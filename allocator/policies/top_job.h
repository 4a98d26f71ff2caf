#pragma once

#include "absl/status/statusor.h"
#include "allocator/policies/policy.h"

namespace espalier {

// All free slots to the trial that is best by its metric, as Ray Tune's DistributeResourcesToTopJob
// (ray.tune.schedulers.ResourceChangingScheduler) gives them. What earlier best trials were given
// they keep to their end; waiting trials come first. It knows nothing of how trials scale, so that
// only a trial's maximum limits it. No options.
absl::StatusOr<std::unique_ptr<Policy>> MakeTopJob(const Options& options);

}  // namespace espalier
