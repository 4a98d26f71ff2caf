#include "tuner/cli/options/engine_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "allocator/pool_size/pool_size.h"
#include "base/machine_limits.h"
#include "tuner/cli/machine/machine.h"
#include "tuner/cli/options/client_options.h"
#include "tuner/cli/options/command.h"
#include "tuner/cli/options/plugin_argument.h"
#include "tuner/server/access/listen_address.h"
#include "tuner/server/engines/engines.h"
#include "tuner/server/engines/template_engines.h"

namespace espalier {
namespace {

constexpr double kStopNotice_s = 6;  // for trials to leave a node with a checkpoint
constexpr double kLongestStart_s = 86400;
constexpr const char* kKubernetes = "kubernetes";
constexpr const char* kLocal = "local";

// Agents run in folders of their own.
std::string AbsolutePath(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

NodeAgents AgentsOf(const GivenTemplate& of, const std::string& token_file, const TlsFiles& tls,
                    int all_nodes) {
  const NodeTemplate& node = of.node;
  NodeAgents agents{
      .executable = OwnExecutable(),
      .arguments = {},
      .token_file = token_file.empty() ? "" : AbsolutePath(token_file),
      // The nodes share what a lone agent would keep.
      .on_one_machine = {"--spare-memory", std::to_string(SpareMemoryBytes() / all_nodes)},
      .stop_notice_s = kStopNotice_s,
      .tls_ca_file = tls.on() ? AbsolutePath(tls.certificate) : ""};
  const auto add = [&agents](const std::string& option, const std::string& value) {
    agents.arguments.insert(agents.arguments.end(), {option, value});
  };
  if (!of.gpus) add("--slots", std::to_string(node.slots));
  if (!node.gpu_type.empty()) add("--gpu-type", node.gpu_type);
  if (node.price_per_hour > 0) add("--price-per-hour", fmt::format("{}", node.price_per_hour));
  if (!node.name.empty()) agents.spot = node.spot;
  return agents;
}

// The rest of `--engine-option NAME=VALUE`, as the engine of that name takes it: a number or a
// text. What is given takes the place of what was there.
absl::Status ReadEngineOptions(const std::vector<std::string>& given, PluginSpec& plugin,
                               TextOptions& texts) {
  std::set<std::string> text_names;
  for (const PluginInfo& info : Engines().Infos()) {
    if (info.name != plugin.name) continue;
    for (const PluginOption& option : info.options) {
      if (option.text) text_names.emplace(option.name);
    }
  }
  TextOptions given_texts;
  for (const std::string& option : given) {
    const std::size_t equals = option.find('=');
    if (equals == std::string::npos || equals == 0) {
      return absl::InvalidArgumentError(
          fmt::format("--engine-option \"{}\": must be NAME=VALUE", option));
    }
    const std::string name = option.substr(0, equals);
    const std::string value = option.substr(equals + 1);
    double number = 0;
    if (!text_names.contains(name) && absl::SimpleAtod(value, &number)) {
      plugin.options[name] = number;
    } else {
      given_texts[name].push_back(value);
    }
  }
  for (auto& [name, values] : given_texts) texts[name] = std::move(values);
  return absl::OkStatus();
}

// How an option's help names the plug-ins it takes.
std::string ChoiceHelp(const std::vector<std::string>& names) {
  return fmt::format("NAME or NAME:option=value,..., where NAME is one of {}; see `tuner plugins`",
                     fmt::join(names, ", "));
}

// What is wrong, under the option that it was said with.
absl::Status InOption(const std::string& option, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), fmt::format("{}: {}", option, std::string(status.message())));
}

}  // namespace

void EngineArguments::AddTo(CliCommand& command) {
  constexpr const char* kGroup = "A pool that grows and shrinks";
  CliOption& engine =
      command.AddOption("--engine", engine_,
                        fmt::format("Engine that starts and ends nodes as studies need them: {} "
                                    "(default: none, agents are started by hand)",
                                    ChoiceHelp(Engines().Names())));
  engine.Group(kGroup);
  const auto with_engine = [&engine](CliOption& option) -> CliOption& {
    return option.Needs(engine).Group(kGroup);
  };
  with_engine(command
                  .AddOption("--engine-option", engine_options_,
                             "An option of the engine, NAME=VALUE; the value may hold any "
                             "characters. May be given several times")
                  .Repeated());
  with_engine(command.AddOption(
                  "--pool-size", rule_,
                  "Rule that chooses the pool's size: " + ChoiceHelp(PoolSizeRules().Names())))
      .ShowDefault();
  CliOption& templates = with_engine(command.AddOption(
      "--node-templates", templates_,
      "JSON file with a list of node templates, each with \"name\", \"slots\" or \"gpus\", "
      "\"price_per_hour\", \"max_nodes\" and, where needed, \"min_nodes\", \"gpu_type\", \"spot\", "
      "\"preemptions_per_hour\", \"start_s\", \"queue_s\" and \"options\" of the engine (see "
      "docs/clusters.md); the rule chooses among them (default: all nodes are alike)"));
  const auto of_all = [&](CliOption& option) -> CliOption& {
    return with_engine(option).Excludes(templates);
  };
  of_all(command.AddOption("--min-nodes", only_.node.min_nodes, "Nodes that are always kept"))
      .Between(0, kMaxEngineNodes)
      .ShowDefault();
  of_all(command.AddOption("--max-nodes", only_.node.max_nodes,
                           "Most nodes at a time (default: with --engine local, as many as the CPU "
                           "cores allow; other engines need it)"))
      .Between(1, kMaxEngineNodes);
  of_all(command.AddOption("--node-slots", only_.node.slots, "Slots per node"))
      .Between(1, kMaxNodeSlots)
      .ShowDefault();
  of_all(command.AddFlag("--node-gpus", only_.gpus,
                         "Use the GPUs that an agent finds on its node as its slots, and no CPU "
                         "slots; --node-slots says how many there will be"));
  of_all(command.AddNumber(
             "--node-start", [this](double seconds) { only_.start_s = seconds; },
             "Seconds from requesting a node to its first replica: no node is started for work "
             "that ends sooner, and a node that has not joined after three times as long, plus 30 "
             "s and the engine's queue time, is given up (default: the engine's own, 5 to 60)"))
      .Between(0.0, kLongestStart_s);
  with_engine(command.AddOption("--node-dir", directory_,
                                "Folder for the nodes' logs, parameters and checkpoints; a service "
                                "restarted with it and at the same address takes its nodes over"))
      .ShowDefault();
  with_engine(
      command.AddFlag("--keep-nodes", keep_nodes_,
                      "Leave the nodes running when the service ends; one that is started "
                      "with the same --node-dir and address goes on with them and their "
                      "trials (default: nodes end with the service, and trials save first)"));
  with_engine(
      command.AddFlag("--adaptdl-jobs", adaptdl_jobs_,
                      "With --engine kubernetes: also run the AdaptDLJobs in its namespace, "
                      "as elastic jobs on the pool, and write their status back"));
}

absl::StatusOr<std::optional<ApiServer>> EngineArguments::JobServer() const {
  if (!adaptdl_jobs_) return std::nullopt;
  ESPALIER_ASSIGN_OR_RETURN(PluginSpec plugin, ParsePlugin("--engine", engine_));
  if (plugin.name != kKubernetes) {
    return absl::InvalidArgumentError(
        fmt::format("--adaptdl-jobs: needs --engine kubernetes, got --engine {}", engine_));
  }
  TextOptions texts;
  ESPALIER_RETURN_IF_ERROR(ReadEngineOptions(engine_options_, plugin, texts));
  const auto text = [&texts](const char* name) {
    const auto at = texts.find(name);
    return at == texts.end() ? std::string() : at->second.back();
  };
  const absl::StatusOr<ApiServer> server = FindApiServer({.address = text("server"),
                                                          .ca_file = text("ca"),
                                                          .token_file = text("token"),
                                                          .space = text("namespace")});
  if (!server.ok()) return InOption("--engine " + engine_, server.status());
  return *server;
}

absl::StatusOr<std::unique_ptr<Engine>> EngineArguments::Make(const std::string& token_file,
                                                              ServiceOptions& options) const {
  if (engine_.empty()) return nullptr;
  ESPALIER_ASSIGN_OR_RETURN(const PluginSpec plugin, ParsePlugin("--engine", engine_));
  if (keep_nodes_ && plugin.name == kLocal) {
    return absl::InvalidArgumentError(
        "--keep-nodes: the nodes of --engine local are processes of the service, and end with it");
  }
  PoolSizeOptions size{.templates = {}};
  ESPALIER_ASSIGN_OR_RETURN(std::vector<Part> parts, Parts());
  ESPALIER_ASSIGN_OR_RETURN(size.rule, ParsePlugin("--pool-size", rule_));
  int all_nodes = 0;
  for (const Part& part : parts) all_nodes += part.released_only ? 0 : part.of.node.max_nodes;
  TemplateEngines::ByTemplate engines;
  for (Part& part : parts) {
    ESPALIER_RETURN_IF_ERROR(MakePart(token_file, options.tls, all_nodes, part));
    if (part.engine->capabilities().elsewhere) {
      ESPALIER_RETURN_IF_ERROR(CheckReachable(options.grpc_address));
    }
    if (!part.released_only) size.templates.push_back(part.of.node);
    engines.emplace(part.of.node.name, std::move(part.engine));
  }
  ESPALIER_RETURN_IF_ERROR(InOption("--pool-size " + rule_, CheckPoolSize(size)));
  const bool alone = engines.size() == 1 && engines.begin()->first.empty();
  std::unique_ptr<Engine> engine = alone ? std::move(engines.begin()->second)
                                         : std::make_unique<TemplateEngines>(std::move(engines));
  options.engine = engine.get();
  options.pool_size = size;
  return engine;
}

// Machines elsewhere would dial their own loopback, and obey whoever listens there.
absl::Status EngineArguments::CheckReachable(const std::string& address) const {
  const absl::StatusOr<ListenAddress> parsed = ParseListenAddress(address);
  if (!parsed.ok() || !parsed->loopback()) return absl::OkStatus();
  const std::string machines = fmt::format(
      "--engine {}: its nodes are other machines, which do not reach {}", engine_, address);
  if (address == kDefaultService) {
    return absl::InvalidArgumentError(fmt::format(
        "{}: give --grpc 0.0.0.0:{}, or HOST:PORT of one network", machines, parsed->port));
  }
  std::fprintf(stderr, "warning: %s, unless they are this one\n", machines.c_str());
  return absl::OkStatus();
}

// Those of the file, or the only one; and those that the folder has nodes of, from an earlier time.
absl::StatusOr<std::vector<EngineArguments::Part>> EngineArguments::Parts() const {
  std::vector<Part> parts;
  if (templates_.empty()) {
    GivenTemplate only = only_;
    if (only.node.max_nodes == 0) {
      only.node.max_nodes = std::clamp(UsableCores() / only.node.slots,
                                       std::max(1, only.node.min_nodes), kMaxEngineNodes);
    }
    if (only.node.min_nodes > only.node.max_nodes) {
      return absl::InvalidArgumentError(
          fmt::format("--min-nodes {}: must be at most --max-nodes, {}", only.node.min_nodes,
                      only.node.max_nodes));
    }
    parts.push_back({.of = only});
  } else {
    const absl::StatusOr<std::vector<GivenTemplate>> given = ReadNodeTemplates(templates_);
    if (!given.ok()) return InOption("--node-templates", given.status());
    for (const GivenTemplate& of : *given) parts.push_back({.of = of});
  }
  for (const std::string& name : TemplatesIn(directory_)) {
    const bool known = std::any_of(parts.begin(), parts.end(),
                                   [&](const Part& part) { return part.of.node.name == name; });
    if (known) continue;
    Part former{.of = parts.front().of, .released_only = true};
    former.of.node.name = name;
    parts.push_back(std::move(former));
  }
  return parts;
}

absl::Status EngineArguments::MakePart(const std::string& token_file, const TlsFiles& tls,
                                       int all_nodes, Part& part) const {
  ESPALIER_ASSIGN_OR_RETURN(PluginSpec plugin, ParsePlugin("--engine", engine_));
  TextOptions texts;
  ESPALIER_RETURN_IF_ERROR(ReadEngineOptions(engine_options_, plugin, texts));
  ESPALIER_RETURN_IF_ERROR(ReadEngineOptions(part.of.options, plugin, texts));
  NodeAgents agents = AgentsOf(part.of, token_file, tls, all_nodes);
  agents.directory = FolderOfTemplate(directory_, part.of.node.name);
  if (!part.of.node.name.empty()) agents.checkpoints = AbsolutePath(directory_ + "/checkpoints");
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      MakeEngine(plugin.name, plugin.options, agents, texts);
  absl::Status made = InOption("--engine " + engine_, engine.status());
  if (made.ok()) {
    part.engine = *std::move(engine);
    made = Fit(part.engine->capabilities(), part);
  }
  if (templates_.empty() || made.ok()) return made;
  return InOption(
      fmt::format("--node-templates {}: template \"{}\"", templates_, part.of.node.name), made);
}

// What the engine's machines are like, where nothing else says it. Where there are several
// templates none waits in the engine's queue for longer than it says itself.
absl::Status EngineArguments::Fit(const EngineCapabilities& machines, Part& part) const {
  NodeTemplate& node = part.of.node;
  node.start_s = part.of.start_s.value_or(machines.start_s);
  if (templates_.empty()) node.queue_s = machines.queue_s;
  if (machines.most_nodes == 0) return absl::OkStatus();
  if (templates_.empty() && only_.node.max_nodes == 0) {
    return absl::InvalidArgumentError(
        fmt::format("--engine {}: say how many nodes it may start, with --max-nodes 1 to {}",
                    engine_, machines.most_nodes));
  }
  if (node.max_nodes > machines.most_nodes) {
    return absl::InvalidArgumentError(fmt::format(
        "{} {}: --engine {} has {} at most", templates_.empty() ? "--max-nodes" : "\"max_nodes\"",
        node.max_nodes, engine_, machines.most_nodes));
  }
  return absl::OkStatus();
}

}  // namespace espalier
