#include "tuner/server/engines/engines.h"

#include "absl/strings/str_cat.h"

namespace espalier {

namespace engines {

PluginRow<Engine, NodeAgents> LocalRow();
PluginRow<Engine, NodeAgents> CommandRow();
PluginRow<Engine, NodeAgents> SlurmRow();
PluginRow<Engine, NodeAgents> KubernetesRow();

}  // namespace engines

const PluginTable<Engine, NodeAgents>& Engines() {
  static const PluginTable<Engine, NodeAgents> table{
      "engine",
      {
          engines::LocalRow(),
          engines::CommandRow(),
          engines::SlurmRow(),
          engines::KubernetesRow(),
      },
  };
  return table;
}

std::vector<std::string> AgentArguments(const NodeAgents& agents) {
  std::vector<std::string> words;
  const auto add = [&words](const std::string& option, const std::string& value) {
    words.insert(words.end(), {option, value});
  };
  if (!agents.token_file.empty()) add("--token-file", agents.token_file);
  if (!agents.tls_ca_file.empty()) add("--tls-ca", agents.tls_ca_file);
  if (agents.stop_notice_s > 0) add("--drain-on-term", absl::StrCat(agents.stop_notice_s));
  words.insert(words.end(), agents.arguments.begin(), agents.arguments.end());
  return words;
}

std::vector<std::string> NoticeArguments(const NodeAgents& agents, double notice_s) {
  std::vector<std::string> words;
  if (agents.spot.value_or(notice_s > 0)) words.emplace_back("--spot");
  if (notice_s > 0) words.insert(words.end(), {"--drain-on-usr1", absl::StrCat(notice_s)});
  return words;
}

absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(std::string_view name, const Options& options,
                                                   const NodeAgents& agents,
                                                   const TextOptions& texts) {
  return Engines().Make(name, options, texts, agents);
}

}  // namespace espalier
