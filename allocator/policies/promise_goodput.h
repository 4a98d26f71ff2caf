#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "allocator/policies/policy.h"

namespace espalier {

// The division of slots with the greatest sum of promise-weighted speedup, less what moving costs.
// What each trial would gain on each number of slots is worked out from its goodput model; a
// multiple-choice knapsack says how many each should have; these are placed with as few changes as
// possible; and exchanges between trials and nodes better what did not fit as planned. Exact or
// nearly so where that can be checked, and a few milliseconds for hundreds of trials.
//
// Waiting trials come first, in order (one more trial scales linearly), and take slots back from
// whoever misses them least; nobody who runs goes below its minimum for that. A move must pay for
// the pause it costs: the trial's own measured one, over the time the move will last.
//
// The weight is promise x urgency. Urgency serves plain jobs, all of equal promise, whose mean
// completion time counts: finishing one job earlier spares all that are behind it nothing, but
// work done on it delays those that could end sooner; in the optimum for jobs that all scale alike
// (Berg, Vesilo, Harchol-Balter, "heSRPT", 2020) a job's weight grows with the number of jobs that
// have as much or more left to do. Here it is that number's share of all jobs, both counting two
// that are yet to come, to the power of `urgency`. What is left is work_left_s, or where that is
// unknown what the job has had so far.
//
// Options: min_gain (0.05), least speedup a slot must bring, half of it to be kept;
// hysteresis (0.15), by how much more what a trial loses counts than what another gains;
// min_resize_interval_s (2), a trial is not resized again within, but for a waiting trial;
// horizon_s (60), over which a move must pay, or 15 times its pause if that is longer, unless the
// trial ends before;
// urgency (0), see above: 0 for tuning, up to 1 for plain jobs.
absl::StatusOr<std::unique_ptr<Policy>> MakePromiseGoodput(const Options& options);

// The same search for another aim: Pollux's fitness, which may leave jobs without slots. For
// comparing searches by one measure; not a row of the table.
std::unique_ptr<Policy> MakePolluxFitnessSearch();

}  // namespace espalier
