#pragma once

#include <vector>

#include "base/plugin.h"

namespace espalier {

// The options of pruners that judge by the promise model.
std::vector<PluginOption> PromisePrunerOptions();

}  // namespace espalier
