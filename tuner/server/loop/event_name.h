#pragma once

#include <string>

#include "tuner/core/state/event.h"

namespace espalier {

// What an event is and what it concerns, for a log: "ReplicaReport replica=17".
std::string NameOf(const Event& event);

}  // namespace espalier
