#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "tuner/core/state/step.h"

namespace espalier {

// Checks what can be checked without running anything: known plug-ins and options, limits that
// make sense, a command. The message names the key.
absl::Status Validate(const StudySpec& spec);

// Cuts off the fractions of options that count, in studies and the pool's policy, as releases did
// that took them: for a state that was loaded. Returns what it did where it matters, for people.
std::vector<std::string> CutFractions(TunerState& state);

// Checks whether such a pool makes sense: the rule and its options, bounds, slots, seconds. The
// message names the value.
absl::Status CheckPoolSize(const PoolSizeOptions& options);

}  // namespace espalier
