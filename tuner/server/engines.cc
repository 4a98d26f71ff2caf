#include "tuner/server/engines.h"

namespace espalier {

namespace engines {

PluginRow<Engine, NodeAgents> LocalRow();
PluginRow<Engine, NodeAgents> CommandRow();
PluginRow<Engine, NodeAgents> SlurmRow();

}  // namespace engines

const PluginTable<Engine, NodeAgents>& Engines() {
  static const PluginTable<Engine, NodeAgents> table{
      "engine",
      {
          engines::LocalRow(),
          engines::CommandRow(),
          engines::SlurmRow(),
      },
  };
  return table;
}

absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(std::string_view name, const Options& options,
                                                   const NodeAgents& agents,
                                                   const TextOptions& texts) {
  return Engines().Make(name, options, texts, agents);
}

}  // namespace espalier
