#pragma once

#include <string>

#include "tuner/core/promise/reliability.h"

namespace espalier::report {

// How far promise could be trusted: what was foretold against what happened, as a picture and a
// table; empty where nothing was foretold.
std::string ReliabilitySection(const Reliability& promise);

}  // namespace espalier::report
