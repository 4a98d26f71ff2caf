#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "allocator/goodput/goodput.h"
#include "trial_runner/elastic/data_loader_options.h"

namespace espalier {

// Returns what the options allow the batch of a trial to be, or an error about the first option
// that cannot be met. Options that the present mode does not use are checked too: studies switch
// modes, and programs should work in both. No batch is larger than the data set.
absl::StatusOr<BatchBounds> BoundsOf(const DataLoaderOptions& options, std::int64_t dataset_size,
                                     bool adaptive_batch);

}  // namespace espalier
