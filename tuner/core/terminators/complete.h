#pragma once

#include <vector>

#include "tuner/core/terminators/terminator.h"

namespace espalier::terminators {

// The trials that terminators go by: those that are complete, with a value that counts.
bool IsComplete(const TerminatorInput& input, const Observation& trial);

// The order in which trials ended.
bool EndedBefore(const Observation& a, const Observation& b);

// In that order.
std::vector<const Observation*> CompleteTrials(const TerminatorInput& input);

// The first of the best. Requires one.
const Observation& BestOf(const TerminatorInput& input,
                          const std::vector<const Observation*>& complete);

}  // namespace espalier::terminators
