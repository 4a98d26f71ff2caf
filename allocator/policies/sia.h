#pragma once

#include "absl/status/statusor.h"
#include "allocator/policies/policy.h"

namespace espalier {

// Sia (Jayaram Subramanya et al., SOSP 2023), section 3: each round every trial chooses one row
// entry or none. Entries are powers of two within a node and whole nodes beyond, on one GPU type;
// their goodput is relative to the row's least, times (T - N S) / (T + S) where the trial would
// have to restart, with its age T, its restarts N and their cost S. The sum of
// goodput^fairness, and of lambda for each trial that gets nothing, is made least: exactly on one
// GPU type, by prices of the types and exactly within each on several. Blind to the metric.
//
// Differences: a trial keeps its nodes where it can and a choice that finds no place is halved,
// where Sia moves others to make whole nodes; between two rounds lost slots are mended and waiting
// trials get their minimum on free slots; no bootstrap profiling of each type.
//
// Options: interval_s (60), fairness (-0.5), lambda (1.1).
absl::StatusOr<std::unique_ptr<Policy>> MakeSia(const Options& options);

}  // namespace espalier
