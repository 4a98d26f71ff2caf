#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "allocator/policies/policy.h"

namespace espalier {

// Slots go where one more of them is worth most: promise times gain in speedup. Waiting trials come
// first (one more trial scales linearly) and take slots back from whoever misses them least; then
// free slots are given out by greatest weighted gain; then slots move from trials that lose little
// to trials that gain more, where that pays for the pause it costs both. Slots that bring next to
// nothing are let go.
//
// Options: min_gain (0.05), least speedup a slot must bring, half of it to be kept;
// hysteresis (0.15), by how much a gain must exceed the loss for a slot to move;
// min_resize_interval_s (2), a trial is not resized again within, but for a waiting trial;
// horizon_s (60), over which a move must pay when a trial's end is unknown or farther.
absl::StatusOr<std::unique_ptr<Policy>> MakeMarginalGain(const Options& options);

}  // namespace espalier
