#pragma once

#include <cstdint>
#include <string>

#include "tests/simulation/simulated_pool.h"

namespace espalier {

// Every trial of every study has ended, nothing holds a slot, and what decisions say of themselves
// in figures fits what they were.
void ExpectAllEnded(const SimulatedPool& pool, std::uint64_t seed);

// How many decisions of all studies have the text in their reason.
int CountReasons(const TunerState& state, const std::string& text);

}  // namespace espalier
