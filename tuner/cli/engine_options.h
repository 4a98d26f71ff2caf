#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tuner/base/status.h"
#include "tuner/core/pool_size/engine.h"
#include "tuner/server/service.h"

namespace espalier {

// The options of `tuner serve` by which it starts and ends nodes itself.
class EngineArguments {
 public:
  void AddTo(CLI::App& app);

  // The engine that --engine names, and in `options` how large a pool it may make; null, with
  // `options` as they were, where none is named. Errors name the option.
  absl::StatusOr<std::unique_ptr<Engine>> Make(const std::string& token_file,
                                               ServiceOptions& options) const;

 private:
  absl::Status Fit(const EngineCapabilities& machines, NodeTemplate& node) const;

  std::string engine_;
  std::vector<std::string> engine_options_;
  std::string rule_ = "utility_price";
  std::string directory_ = "espalier-nodes";
  NodeTemplate node_{.slots = 1, .start_s = 5, .min_nodes = 0, .max_nodes = 0};
  bool start_given_ = false;
  bool node_gpus_ = false;
};

}  // namespace espalier
