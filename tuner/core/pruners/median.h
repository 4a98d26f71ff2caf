#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier {

// The median stopping rule (Golovin et al., Google Vizier, KDD 2017): a trial ends when its best
// value so far is worse than the median of what complete trials had at the same step. A newest
// value that is not a number ends it at once.
//
// Options: startup_trials (5), no verdict before so many trials are complete; warmup_steps (0), no
// verdict in a trial's first so many steps; interval (1), a verdict only at the first value of each
// span of so many steps after these.
absl::StatusOr<std::unique_ptr<Pruner>> MakeMedian(const Options& options);

}  // namespace espalier
