#pragma once

#include "absl/status/statusor.h"
#include "allocator/policies/policy.h"

namespace espalier {

// Throughput scaling efficiency (Or, Zhang, Freedman, MLSys 2020): a trial on k slots takes d more
// while (R(k+d) - R(k)) / (d * R(k) / k) exceeds a threshold; 1 is linear scaling. See scale_out.h
// for the pool. Options: threshold (0.5), step (1), d.
absl::StatusOr<std::unique_ptr<Policy>> MakeScalingEfficiency(const Options& options);

}  // namespace espalier
