#pragma once

#include <cstdint>
#include <optional>

#include "tuner/core/pool/pool_state.h"
#include "tuner/core/state/change.h"

namespace espalier {

// How far a member of a population has come, in reported steps; a clone that has reported nothing,
// as far as its parent had when it was made.
std::int64_t StepOfMember(const TunerState& state, const Trial& trial);

// How many members of the study's population have no slots, or are yet to be drawn, and are an
// interval or more behind `step`.
std::int64_t WaitingBehind(const TunerState& state, const PoolState& pool, const Study& study,
                           std::int64_t step);

// Up to which multiple of the interval the one of them has been compared that is furthest behind,
// however far the others are. None: nobody waits.
std::optional<std::int64_t> LeastWaiting(const TunerState& state, const PoolState& pool,
                                         const Study& study);

}  // namespace espalier
