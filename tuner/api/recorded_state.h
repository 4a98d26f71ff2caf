#pragma once

#include "base/status.h"
#include "tuner.pb.h"
#include "tuner/core/state/change.h"

namespace espalier {

// The state that GetStudy has told at that moment, as far as it tells it: one study with its
// trials, its decisions and the nodes whose slots they held. What nobody may see who is given a
// record is left out: the values of environment variables. INVALID_ARGUMENT for what cannot be one
// study's record.
absl::StatusOr<TunerState> StateOf(const v1::StudyDetails& details, Time now);

}  // namespace espalier
