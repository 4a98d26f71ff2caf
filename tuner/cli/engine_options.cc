#include "tuner/cli/engine_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "allocator/pool_size/pool_size.h"
#include "tuner/cli/machine.h"
#include "tuner/cli/plugin_argument.h"
#include "tuner/server/engines.h"

namespace espalier {
namespace {

constexpr double kStopNotice_s = 6;  // for trials to leave a node with a checkpoint
constexpr std::int64_t kSpareShare = 8;
constexpr int kMostSlots = 4096;
constexpr double kLongestStart_s = 86400;

// Agents run in folders of their own.
std::string AbsolutePath(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

NodeAgents AgentsOf(const NodeTemplate& node, bool gpus, const std::string& token_file,
                    const TlsFiles& tls) {
  NodeAgents agents{
      .executable = OwnExecutable(),
      .arguments = {},
      .token_file = token_file.empty() ? "" : AbsolutePath(token_file),
      // The nodes share what a lone agent would keep.
      .on_one_machine = {"--spare-memory",
                         std::to_string(MemoryBytes() / kSpareShare / node.max_nodes)},
      .stop_notice_s = kStopNotice_s,
      .tls_ca_file = tls.on() ? AbsolutePath(tls.certificate) : ""};
  if (!gpus) {
    agents.arguments.insert(agents.arguments.end(), {"--slots", std::to_string(node.slots)});
  }
  return agents;
}

// The rest of `--engine-option NAME=VALUE`, as the engine of that name takes it: a number or a
// text.
absl::Status ReadEngineOptions(const std::vector<std::string>& given, PluginSpec& plugin,
                               TextOptions& texts) {
  std::set<std::string> text_names;
  for (const PluginInfo& info : Engines().Infos()) {
    if (info.name != plugin.name) continue;
    for (const PluginOption& option : info.options) {
      if (option.text) text_names.emplace(option.name);
    }
  }
  for (const std::string& option : given) {
    const std::size_t equals = option.find('=');
    if (equals == std::string::npos || equals == 0) {
      return absl::InvalidArgumentError(
          fmt::format("--engine-option \"{}\": want NAME=VALUE", option));
    }
    const std::string name = option.substr(0, equals);
    const std::string value = option.substr(equals + 1);
    double number = 0;
    if (!text_names.contains(name) && absl::SimpleAtod(value, &number)) {
      plugin.options[name] = number;
    } else {
      texts[name].push_back(value);
    }
  }
  return absl::OkStatus();
}

// How an option's help names the plug-ins it takes.
std::string ChoiceHelp(const std::vector<std::string>& names) {
  return fmt::format("NAME or NAME:option=value,... of: {}; see tuner plugins",
                     fmt::join(names, ", "));
}

// What is wrong, under the option that it was said with.
absl::Status InOption(const std::string& option, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), fmt::format("{}: {}", option, std::string(status.message())));
}

}  // namespace

void EngineArguments::AddTo(CLI::App& app) {
  constexpr const char* kGroup = "A pool that grows and shrinks";
  CLI::Option* engine =
      app.add_option("--engine", engine_,
                     fmt::format("What starts and ends nodes as studies need them, {} (default: "
                                 "none, agents are started by hand)",
                                 ChoiceHelp(Engines().Names())));
  engine->group(kGroup);
  const auto with_engine = [engine](CLI::Option* option) {
    return option->needs(engine)->group(kGroup);
  };
  with_engine(app.add_option("--engine-option", engine_options_,
                             "NAME=VALUE, an option of the engine, whatever the value holds; may "
                             "be given several times")
                  ->expected(1)
                  ->take_all());
  with_engine(app.add_option("--pool-size", rule_,
                             "By which rule the pool's size is chosen, " +
                                 ChoiceHelp(PoolSizeRules().Names())))
      ->capture_default_str();
  with_engine(app.add_option("--min-nodes", node_.min_nodes, "Nodes that stay in any case"))
      ->check(CLI::Range(0, kMaxEngineNodes))
      ->capture_default_str();
  with_engine(app.add_option("--max-nodes", node_.max_nodes,
                             "Nodes at most (default: as many as the CPU cores make)"))
      ->check(CLI::Range(1, kMaxEngineNodes));
  with_engine(app.add_option("--node-slots", node_.slots, "Slots of each node"))
      ->check(CLI::Range(1, kMostSlots))
      ->capture_default_str();
  with_engine(app.add_flag("--node-gpus", node_gpus_,
                           "The slots are the GPUs that an agent finds on its node, and no CPU "
                           "slots; --node-slots says how many that will be"));
  with_engine(app.add_option_function<double>(
                  "--node-start",
                  [this](double seconds) {
                    node_.start_s = seconds;
                    start_given_ = true;
                  },
                  "Seconds from asking for a node to its first replica: none is started for what "
                  "ends sooner, and one that has not come after three times that and 30 s, and "
                  "the engine's own queue, is given up (default: the engine's own, 5 to 60)"))
      ->check(CLI::Range(0.0, kLongestStart_s));
  with_engine(app.add_option("--node-dir", directory_,
                             "Where the nodes' logs, parameters and checkpoints go; a service that "
                             "is started again on it and on the same address takes its nodes over"))
      ->capture_default_str();
}

absl::StatusOr<std::unique_ptr<Engine>> EngineArguments::Make(const std::string& token_file,
                                                              ServiceOptions& options) const {
  if (engine_.empty()) return nullptr;
  ESPALIER_ASSIGN_OR_RETURN(PluginSpec plugin, ParsePlugin("--engine", engine_));
  TextOptions texts;
  ESPALIER_RETURN_IF_ERROR(ReadEngineOptions(engine_options_, plugin, texts));
  PoolSizeOptions size;
  size.node = node_;
  if (size.node.max_nodes == 0) {
    size.node.max_nodes =
        std::clamp(CpuCores() / node_.slots, std::max(1, node_.min_nodes), kMaxEngineNodes);
  }
  if (node_.min_nodes > size.node.max_nodes) {
    return absl::InvalidArgumentError(fmt::format("--min-nodes {}: must be at most --max-nodes, {}",
                                                  node_.min_nodes, size.node.max_nodes));
  }
  ESPALIER_ASSIGN_OR_RETURN(size.rule, ParsePlugin("--pool-size", rule_));
  NodeAgents agents = AgentsOf(size.node, node_gpus_, token_file, options.tls);
  agents.directory = directory_;
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      MakeEngine(plugin.name, plugin.options, agents, texts);
  if (!engine.ok()) return InOption("--engine " + engine_, engine.status());
  ESPALIER_RETURN_IF_ERROR(Fit((*engine)->capabilities(), size.node));
  ESPALIER_RETURN_IF_ERROR(InOption("--pool-size " + rule_, CheckPoolSize(size)));
  options.engine = engine->get();
  options.pool_size = size;
  return engine;
}

// What the engine's machines are like, where no option says it.
absl::Status EngineArguments::Fit(const EngineCapabilities& machines, NodeTemplate& node) const {
  if (!start_given_) node.start_s = machines.start_s;
  node.queue_s = machines.queue_s;
  if (machines.most_nodes == 0) return absl::OkStatus();
  if (node_.max_nodes == 0) {
    return absl::InvalidArgumentError(
        fmt::format("--engine {}: say how many nodes it may start, with --max-nodes 1 to {}",
                    engine_, machines.most_nodes));
  }
  if (node_.max_nodes > machines.most_nodes) {
    return absl::InvalidArgumentError(fmt::format("--max-nodes {}: --engine {} has {} at most",
                                                  node_.max_nodes, engine_, machines.most_nodes));
  }
  return absl::OkStatus();
}

}  // namespace espalier
