#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tuner/core/pool_size/engine.h"

namespace espalier {

// The engine of a pool with nodes of several templates: an engine for each of them, by the
// template's name, which is part of its nodes' names. Requests for nodes of other templates change
// nothing.
class TemplateEngines final : public Engine {
 public:
  using ByTemplate = std::map<std::string, std::unique_ptr<Engine>>;

  explicit TemplateEngines(ByTemplate engines) : engines_(std::move(engines)) {}

  absl::Status AwaitTurn(const std::function<bool(double seconds)>& wait) override;
  void Open(const std::string& grpc_address, const std::string& http_address) override;
  void StartNode(const std::string& name) override;
  void ReleaseNode(const std::string& name) override;
  void NodeJoined(const std::string& name) override;
  std::vector<std::string> Troubles() const override;
  void Stop() override;  // all at the same time
  void Leave() override;

 private:
  Engine* Of(const std::string& node) const;

  const ByTemplate engines_;
};

// Where the engine of a template keeps its nodes, in the folder of all of them.
std::string FolderOfTemplate(const std::string& directory, const std::string& node_template);

// Templates of which nodes were started in that folder before, by its folders: "" where there are
// nodes of no template.
std::vector<std::string> TemplatesIn(const std::string& directory);

}  // namespace espalier
