#pragma once

#include "absl/status/statusor.h"
#include "allocator/policies/policy.h"

namespace espalier {

// Fluid's water filling (Yu et al., MLSys 2021, and github.com/SymbioticLab/Fluid): the longer a
// trial's step takes on one slot (its height h), the wider it is made, so that all trials of a
// group end together. Widths w = min(max(floor(h * n / sum h), 1), d) for n trials are scaled to
// the slots there are. Divided anew when a trial comes, goes or is measured for the first time, or
// the slots change. Trials that were not measured yet have their minimum.
//
// Differences: no trial has less than a slot, since slots are not shared here; whole slots by the
// largest remainder of w over what is given; all trials of the pool are one group.
//
// Options: max_width (4), d.
absl::StatusOr<std::unique_ptr<Policy>> MakeFluid(const Options& options);

}  // namespace espalier
