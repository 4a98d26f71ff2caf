#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "tuner/cli/options/node_templates.h"
#include "tuner/core/pool_size/engine.h"
#include "tuner/server/engines/kubernetes_api.h"
#include "tuner/server/service.h"

namespace espalier {

class CliCommand;

// The options of `tuner serve` by which it starts and ends nodes itself.
class EngineArguments {
 public:
  void AddTo(CliCommand& command);

  // The engine that --engine names, and in `options` how large a pool it may make; null, with
  // `options` as they were, where none is named. Errors name the option.
  absl::StatusOr<std::unique_ptr<Engine>> Make(const std::string& token_file,
                                               ServiceOptions& options) const;

  // Whether its nodes stay when the service ends.
  bool keeps_nodes() const { return keep_nodes_; }

  // Where AdaptDL's jobs are taken from (--adaptdl-jobs); nothing: from nowhere.
  absl::StatusOr<std::optional<ApiServer>> JobServer() const;

 private:
  // A template and the engine of its nodes; without --node-templates there is one.
  struct Part {
    GivenTemplate of;
    bool released_only = false;  // no template any more: its nodes are given back
    std::unique_ptr<Engine> engine{};
  };

  absl::StatusOr<std::vector<Part>> Parts() const;
  absl::Status MakePart(const std::string& token_file, const TlsFiles& tls, int all_nodes,
                        Part& part) const;
  absl::Status Fit(const EngineCapabilities& machines, Part& part) const;
  // Whether machines elsewhere can reach the service there.
  absl::Status CheckReachable(const std::string& address) const;

  std::string engine_;
  std::vector<std::string> engine_options_;
  bool adaptdl_jobs_ = false;
  bool keep_nodes_ = false;
  std::string rule_ = "utility_price";
  std::string directory_ = "espalier-nodes";
  std::string templates_;  // a file
  GivenTemplate only_{.node = {.slots = 1, .start_s = 5, .min_nodes = 0, .max_nodes = 0}};
};

}  // namespace espalier
