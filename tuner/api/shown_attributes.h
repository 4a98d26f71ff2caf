#pragma once

#include "tuner/core/state/study.h"

namespace espalier {

// A trial's attributes as clients see them. What its client has said about how the pool runs it is
// among the system's, as "espalier:held" and "espalier:environment".
Attributes ShownAttributes(const Trial& trial);

}  // namespace espalier
