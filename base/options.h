#pragma once

#include <map>
#include <string>
#include <vector>

namespace espalier {

// Numeric settings of a plug-in (sampler, pruner, policy) by name, as a study file gives them.
// A plug-in's factory refuses names it does not know and lists those it does.
using Options = std::map<std::string, double>;

// Settings that are texts, as a command line gives them; each may be given several times. Engines
// have some: they name what exists on other people's machines.
using TextOptions = std::map<std::string, std::vector<std::string>>;

}  // namespace espalier
