#include "tuner/cli/engine_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

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

std::vector<std::string> AgentArguments(const NodeTemplate& node, const std::string& token_file,
                                        const TlsFiles& tls) {
  std::vector<std::string> words = {
      "--slots", std::to_string(node.slots), "--drain-on-term", fmt::format("{:g}", kStopNotice_s),
      // The nodes are all on one machine, and share what a lone agent would keep.
      "--spare-memory", std::to_string(MemoryBytes() / kSpareShare / node.max_nodes)};
  if (!token_file.empty()) words.insert(words.end(), {"--token-file", token_file});
  if (tls.on()) words.insert(words.end(), {"--tls-ca", tls.certificate});
  return words;
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
  with_engine(app.add_option("--node-slots", node_.slots, "CPU slots of each node"))
      ->check(CLI::Range(1, kMostSlots))
      ->capture_default_str();
  with_engine(app.add_option("--node-start", node_.start_s,
                             "Seconds from asking for a node to its first replica: none is started "
                             "for what ends sooner, and one that has not come after three times "
                             "that and 30 s is given up"))
      ->check(CLI::Range(0.0, kLongestStart_s))
      ->capture_default_str();
  with_engine(app.add_option("--node-dir", directory_,
                             "Where the nodes' logs, parameters and checkpoints go; a service that "
                             "is started again on it and on the same address takes its nodes over"))
      ->capture_default_str();
}

absl::StatusOr<std::unique_ptr<Engine>> EngineArguments::Make(const std::string& token_file,
                                                              ServiceOptions& options) const {
  if (engine_.empty()) return nullptr;
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
  ESPALIER_RETURN_IF_ERROR(InOption("--pool-size " + rule_, CheckPoolSize(size)));
  ESPALIER_ASSIGN_OR_RETURN(const PluginSpec plugin, ParsePlugin("--engine", engine_));
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      MakeEngine(plugin.name, plugin.options,
                 {.executable = OwnExecutable(),
                  .arguments = AgentArguments(size.node, token_file, options.tls),
                  .directory = directory_});
  if (!engine.ok()) return InOption("--engine " + engine_, engine.status());
  options.engine = engine->get();
  options.pool_size = size;
  return engine;
}

}  // namespace espalier
