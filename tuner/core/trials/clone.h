#pragma once

#include "tuner/core/state/turn.h"

namespace espalier {

// A new trial in the study of this one, that begins with its newest checkpoint once it has a copy
// of it (tuner/core/checkpoints).
TrialId EmitClone(Turn& turn, const Trial& parent, Parameters parameters);

}  // namespace espalier
