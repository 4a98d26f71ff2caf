#pragma once

#include "tuner/core/state/study.h"

namespace espalier {

// A study's attributes as clients see them: less the private ones (core/state).
Attributes ShownAttributes(const Study& study);

// A trial's, likewise. What its client has said about how the pool runs it is among the system's,
// as "espalier:held" and "espalier:environment"; the values in the latter are masked unless the
// reader may see secrets.
Attributes ShownAttributes(const Trial& trial, bool shows_secrets);

}  // namespace espalier
