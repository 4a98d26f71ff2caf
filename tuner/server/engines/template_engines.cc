#include "tuner/server/engines/template_engines.h"

#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/folder_entries.h"
#include "tuner/core/state/engine_node_names.h"

namespace espalier {

namespace {

constexpr const char* kFolder = "template.";

}  // namespace

Engine* TemplateEngines::Of(const std::string& node) const {
  const std::optional<std::string> node_template = TemplateOf(node);
  const auto engine = node_template ? engines_.find(*node_template) : engines_.end();
  return engine == engines_.end() ? nullptr : engine->second.get();
}

absl::Status TemplateEngines::AwaitTurn(const std::function<bool(double seconds)>& wait) {
  std::set<std::string> awaited;
  for (const auto& [name, engine] : engines_) {
    const std::string election = engine->election();
    const bool first = election.empty() || awaited.insert(election).second;
    ESPALIER_RETURN_IF_ERROR(first ? engine->AwaitTurn(wait) : engine->ShareTurn());
  }
  return absl::OkStatus();
}

void TemplateEngines::Open(const std::string& grpc_address, const std::string& http_address) {
  for (const auto& [name, engine] : engines_) engine->Open(grpc_address, http_address);
}

void TemplateEngines::StartNode(const std::string& name) {
  if (Engine* engine = Of(name)) engine->StartNode(name);
}

void TemplateEngines::ReleaseNode(const std::string& name) {
  if (Engine* engine = Of(name)) engine->ReleaseNode(name);
}

void TemplateEngines::NodeJoined(const std::string& name) {
  if (Engine* engine = Of(name)) engine->NodeJoined(name);
}

std::vector<std::string> TemplateEngines::Troubles() const {
  std::vector<std::string> lines;
  for (const auto& [name, engine] : engines_) {
    for (const std::string& line : engine->Troubles()) {
      lines.push_back(name.empty() ? line : absl::StrCat("template ", name, ": ", line));
    }
  }
  return lines;
}

void TemplateEngines::Leave() {
  for (const auto& [name, engine] : engines_) engine->Leave();
}

void TemplateEngines::Stop() {
  std::vector<std::thread> stops;
  for (const auto& [name, engine] : engines_) {
    stops.emplace_back([stopped = engine.get()] { stopped->Stop(); });
  }
  for (std::thread& stop : stops) stop.join();
}

std::string FolderOfTemplate(const std::string& directory, const std::string& node_template) {
  return node_template.empty() ? directory : absl::StrCat(directory, "/", kFolder, node_template);
}

std::vector<std::string> TemplatesIn(const std::string& directory) {
  std::set<std::string> found;
  std::error_code none;
  for (const auto& entry : FolderEntries(directory, none)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kFolder)) found.insert(name.substr(std::string(kFolder).size()));
    if (TemplateOf(name) == "") found.insert("");
  }
  return {found.begin(), found.end()};
}

}  // namespace espalier
