#include "tuner/server/engines.h"

namespace espalier {

namespace engines {

PluginRow<Engine, NodeAgents> LocalRow();

}  // namespace engines

const PluginTable<Engine, NodeAgents>& Engines() {
  static const PluginTable<Engine, NodeAgents> table{
      "engine",
      {
          engines::LocalRow(),
      },
  };
  return table;
}

absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(std::string_view name, const Options& options,
                                                   const NodeAgents& agents) {
  return Engines().Make(name, options, agents);
}

}  // namespace espalier
