#pragma once

#include <vector>

#include "tuner/server/frontend.h"

namespace espalier {

// The frontends of every service that the command line starts: one row an adapter.
std::vector<MakeFrontend> AllFrontends();

}  // namespace espalier
