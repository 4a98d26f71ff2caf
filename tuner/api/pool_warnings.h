#pragma once

#include <map>
#include <string>
#include <vector>

#include "tuner/core/core.h"

namespace espalier {

// What is wrong with the pool as it is set up, and what to do about it: one line for each fault.
// `hosts` are the addresses at which nodes' replicas are reached, by node name, as far as they are
// known.
std::vector<std::string> PoolWarnings(const std::vector<NodeView>& nodes,
                                      const std::map<std::string, std::string>& hosts);

}  // namespace espalier
