#include "tuner/api/pool_warnings.h"

#include "absl/strings/str_cat.h"
#include "base/local_end.h"

namespace espalier {

std::vector<std::string> PoolWarnings(const std::vector<NodeView>& nodes,
                                      const std::map<std::string, std::string>& hosts) {
  std::vector<const NodeView*> inside;
  const NodeView* elsewhere = nullptr;
  for (const NodeView& node : nodes) {
    const auto host = hosts.find(node.name);
    if (!node.connected || host == hosts.end()) continue;
    if (IsLoopback(host->second)) {
      inside.push_back(&node);
    } else if (elsewhere == nullptr) {
      elsewhere = &node;
    }
  }
  std::vector<std::string> warnings;
  if (elsewhere == nullptr) return warnings;
  for (const NodeView* node : inside) {
    warnings.push_back(absl::StrCat("replicas of node ", node->name, " are reached at ",
                                    hosts.at(node->name), ", by its own machine alone, and node ",
                                    elsewhere->name, " is on another (", hosts.at(elsewhere->name),
                                    "): have its agent join by the machine's address (tuner agent ",
                                    "--join HOST:PORT with that address), or give it --address"));
  }
  return warnings;
}

}  // namespace espalier
