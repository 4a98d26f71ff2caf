#pragma once

#include "absl/status/statusor.h"
#include "allocator/policies/policy.h"

namespace espalier {

// Pollux (Qiao et al., OSDI 2021) as its artifact has it (petuum/adaptdl, branch osdi21-artifact,
// simulator/pollux.py): every minute NSGA-II looks for the allocation with the greatest power mean
// of speedups (pollux_fitness.h) and, as the second objective, utility of the nodes in use. It
// starts from the best front of the last search. Blind to the metric of a trial.
//
// Differences: between two searches lost slots are mended and waiting trials get their minimum on
// free slots; a trial without a model stays at its minimum; draining nodes, GPU types and trials
// that are being resized are respected; moves that would wait for each other are left out
// (transition.h); no cluster autoscaling.
//
// Options: interval_s (60) between searches, generations (100), population (100), fairness (-1),
// the exponent of the power mean (0: geometric), restart_delay_s (30), seed (1).
absl::StatusOr<std::unique_ptr<Policy>> MakePollux(const Options& options);

}  // namespace espalier
