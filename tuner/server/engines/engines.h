#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/plugin.h"
#include "tuner/core/pool_size/engine.h"

namespace espalier {

// Where an agent finds what is its own, on a machine that does not see our files.
struct MachinePaths {
  std::string directory;
  std::string token_file;
  std::string tls_ca_file;
};

// The agent that an engine runs for each node, started as
//   EXECUTABLE agent --join ADDRESS --name NODE --dir FOLDER AgentArguments...
struct NodeAgents {
  std::string executable;
  std::vector<std::string> arguments;
  std::string directory{};                    // of all nodes; each has a folder in it, by its name
  std::string token_file{};                   // that they show; it is there once the service is
  std::vector<std::string> on_one_machine{};  // arguments of nodes that share one machine
  double stop_notice_s = 0;                   // that a SIGTERM gives them; 0: none
  std::string tls_ca_file{};                  // trusted authorities; empty: as their token says
  std::optional<MachinePaths> paths{};        // none: as here
  std::string checkpoints{};   // folder that nodes of one machine share; empty: in `directory`
  std::optional<bool> spot{};  // whether they may be taken away; none: if there is a notice
};

// The arguments, those by which it finds its files, and what SIGTERM means to it.
std::vector<std::string> AgentArguments(const NodeAgents& agents);

// The arguments of agents on machines that get a notice by SIGUSR1 so many seconds before they are
// taken away; 0: they get no notice.
std::vector<std::string> NoticeArguments(const NodeAgents& agents, double notice_s);

// All engines. Each row is the last function of its engine's source file.
const PluginTable<Engine, NodeAgents>& Engines();

// Makes an engine, which is yet to be opened. InvalidArgument: the engine or an option is unknown,
// or a value is out of range; the error names it and what is known. An engine may also refuse the
// directory.
absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(std::string_view name, const Options& options,
                                                   const NodeAgents& agents,
                                                   const TextOptions& texts = {});

}  // namespace espalier
