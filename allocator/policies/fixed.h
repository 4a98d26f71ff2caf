#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "allocator/policies/policy.h"

namespace espalier {

// Every trial gets its minimum (or pinned number) of slots and keeps it to its end: what tuners
// without elastic trials do. Takes no options.
absl::StatusOr<std::unique_ptr<Policy>> MakeFixed(const Options& options);

}  // namespace espalier
