#pragma once

#include <cstdint>
#include <map>

#include "tuner/core/pool/pool_state.h"
#include "tuner/core/state/change.h"

namespace espalier {

// How far a member of a population has come, in reported steps; a clone that has reported nothing,
// as far as its parent had when it was made.
std::int64_t StepOfMember(const TunerState& state, const Trial& trial);

// How many members of the study's population have no slots, or are yet to be drawn, by the multiple
// of the interval up to which they have been compared.
std::map<std::int64_t, std::int64_t> WaitingMembers(const TunerState& state, const PoolState& pool,
                                                    const Study& study);

}  // namespace espalier
