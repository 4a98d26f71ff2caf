#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "allocator/goodput/goodput.h"
#include "trial_runner/elastic/data_loader_options.h"

namespace espalier {

// What the options allow the batch of a trial to be, or the first of them that cannot be met, also
// where the present mode does not use it: studies switch modes, programs should work in both. No
// batch is larger than the data set.
absl::StatusOr<BatchBounds> BoundsOf(const DataLoaderOptions& options, std::int64_t dataset_size,
                                     bool adaptive_batch);

}  // namespace espalier
