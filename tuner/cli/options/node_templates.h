#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/pool_size/pool_size.h"
#include "base/options.h"
#include "base/status.h"
#include "tuner/core/state/study.h"

namespace espalier {

// An entry of a file of node templates.
struct GivenTemplate {
  NodeTemplate node{};
  bool gpus = false;                // the slots are the GPUs that an agent finds
  std::optional<double> start_s{};  // none: the engine's own
  // Options of the engine that are the template's own, as --engine-option gives them.
  std::vector<std::string> options{};
};

// A JSON list of templates. InvalidArgument names the template and the key, and what would be
// right.
absl::StatusOr<std::vector<GivenTemplate>> ParseNodeTemplates(const std::string& json);

// The same from a file; the message begins with its path.
absl::StatusOr<std::vector<GivenTemplate>> ReadNodeTemplates(const std::string& path);

}  // namespace espalier
