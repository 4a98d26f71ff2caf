#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "allocator/policies/policy.h"

namespace espalier {

// Optimus (Peng et al., EuroSys 2018) as the Pollux paper compares itself with it: every job gets
// its minimum, and each further slot goes where it shortens the remaining time most; jobs whose
// number of slots changed are placed anew, smallest first, on the nodes with the most free slots.
// The time of a step is the job's known one (the paper's oracle), else by its goodput model, else
// linear in the slots. No regard for promise, nor for what a resize costs. Smaller minima go before
// earlier submissions.
//
// Option share_spanned (0): 1 allows several jobs that span nodes on one node, as the original
// does.
absl::StatusOr<std::unique_ptr<Policy>> MakeOptimus(const Options& options);

}  // namespace espalier
