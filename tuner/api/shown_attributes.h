#pragma once

#include "tuner/core/state/study.h"

namespace espalier {

// A study's attributes as clients see them: less the private ones (core/state).
Attributes ShownAttributes(const Study& study);

// A trial's, likewise. What its client has said about how the pool runs it is among the system's,
// as "espalier:held" and "espalier:environment"; the values in the latter are masked unless the
// reader may see secrets. So is what follows from the study's constraints and its figures, as a list
// "constraints" (search_spaces/formats/optuna/constraints.h).
Attributes ShownAttributes(const Trial& trial, bool shows_secrets);

}  // namespace espalier
