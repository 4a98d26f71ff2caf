#pragma once

#include "tuner/base/status.h"
#include "tuner/core/state/step.h"

namespace espalier {

// Checks what can be checked without running anything: known plug-ins and options, limits that
// make sense, a command. The message names the key.
absl::Status Validate(const StudySpec& spec);

// Checks whether such a pool makes sense: the rule and its options, bounds, slots, seconds. The
// message names the value.
absl::Status CheckPoolSize(const PoolSizeOptions& options);

}  // namespace espalier
