#pragma once

#include <vector>

#include "tuner/server/door.h"

namespace espalier {

// The doors of every service that the command line starts: one row an adapter.
std::vector<MakeDoor> AllDoors();

}  // namespace espalier
