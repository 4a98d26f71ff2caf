#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "allocator/policies/policy.h"

namespace espalier {

// Tiresias (Gu et al., NSDI 2019) as the Pollux paper compares itself with it: least attained
// service in two queues. A job runs on exactly the slots its user asked for, or not at all; it
// starts in the first queue and falls to the end of the second once it has held `queue_slot_s`
// slot-seconds. Jobs are admitted queue by queue, in the order they came in; one that does not fit
// is passed over, and what runs behind it makes way once it does fit. Remembers the queues.
//
// Options: queue_slot_s (57600), and share_spanned (0): 1 allows several jobs that span nodes on
// one node, as the original does.
absl::StatusOr<std::unique_ptr<Policy>> MakeTiresias(const Options& options);

}  // namespace espalier
