#pragma once

#include <optional>

#include "tuner/core/state/step.h"

namespace espalier {

// The policy that the pool has of its own: what a client has said, or else the service was started
// with. None: that of its oldest running study is followed.
inline std::optional<PluginSpec> PoolPolicy(const CoreOptions& options, const TunerState& state) {
  if (!options.policy) return std::nullopt;
  return state.policy ? state.policy : options.policy;
}

}  // namespace espalier
