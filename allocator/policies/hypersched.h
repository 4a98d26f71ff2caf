#pragma once

#include "absl/status/statusor.h"
#include "allocator/policies/policy.h"

namespace espalier {

// HyperSched's allocation (Liaw et al., SoCC 2019, and github.com/ucbrise/hypersched): every live
// trial gets its minimum, and what is left goes by rank of the metric. A trial shrinks at once; it
// grows if f(new) * (T - startup) / (f(old) * T) > min_gain, with its speedup f, the time T to the
// deadline and the 90th percentile of what resizes have cost. Without a deadline the speedup alone
// decides. Its exploration stop is the core's business.
//
// Differences: decided anew at each call, not each five results; a trial without a value ranks
// behind those with one; what a trial cannot use goes to the next.
//
// Options: leftover: 0 uniform, round robin by rank; 1 (default) all to the best; 2 by the softmax
// of the metric, the rest to the best. min_gain (1.1).
absl::StatusOr<std::unique_ptr<Policy>> MakeHyperSched(const Options& options);

}  // namespace espalier
