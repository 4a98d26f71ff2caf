#pragma once

#include <vector>

#include "absl/status/status.h"
#include "trial_runner/collectives/collectives.h"
#include "trial_runner/torch/engine/parts.h"

namespace espalier {

// All members of a group that begins call this with what their programs have made before the first
// step, named as in a message. Where some of it differs all end with kInvalidArgument, which names
// it: all but rank 0 would lose theirs without a word. Nothing is compared where a member is
// `running`, and so has been past that moment, where the names differ, which a hand-over finds, or
// where ESPALIER_CHECK_REPLICAS is off. Ends with the group's own error.
absl::Status CompareFirstValues(Collectives& collectives, const std::vector<NamedTensor>& values,
                                bool running);

}  // namespace espalier
