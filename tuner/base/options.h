#pragma once

#include <map>
#include <string>

namespace espalier {

// Numeric settings of a plug-in (sampler, pruner, policy) by name, as a study file gives them.
// A plug-in's factory refuses names it does not know and lists those it does.
using Options = std::map<std::string, double>;

}  // namespace espalier
