#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/base/plugin.h"
#include "tuner/core/pool_size/engine.h"

namespace espalier {

// The agent that an engine runs for each node, started as
//   EXECUTABLE agent --join ADDRESS --name NODE --dir FOLDER ARGUMENTS...
struct NodeAgents {
  std::string executable;
  std::vector<std::string> arguments;
  std::string directory;  // of all nodes; each has a folder in it, by its name
};

// All there are; a row of it is the last function of its source file.
const PluginTable<Engine, NodeAgents>& Engines();

// An engine that is yet to be opened. InvalidArgument names an unknown engine or option, or a value
// out of range, and what is known; an engine may also refuse the directory.
absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(std::string_view name, const Options& options,
                                                   const NodeAgents& agents);

}  // namespace espalier
