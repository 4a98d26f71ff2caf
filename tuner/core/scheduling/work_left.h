#pragma once

#include <cstdint>
#include <optional>

#include "allocator/pool/pool.h"
#include "tuner/core/state/study.h"

namespace espalier {

// The share of its work that a trial has done, 0: unknown. `epoch` is what its replicas last told;
// one that has none, since it is paused, has its last report to go by. `last_step` 0: unknown.
double ShareDone(const Trial& trial, std::optional<double> epoch, std::int64_t last_step);

// Seconds that the rest would take on one slot, from what it did in the time that it held slots and
// how much faster `job`'s model says it was on them; 0: unknown.
double WorkLeft(const Trial& trial, const Job& job, double share_done, Time now);

}  // namespace espalier
