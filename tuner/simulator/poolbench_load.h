#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "tuner/simulator/poolbench.h"
#include "tuner/simulator/workload.h"

namespace espalier {

// Poolbench as the load of a study: minimise the error after 81 epochs. Trial n runs configuration
// n of SamplePoolbench(seed), as the Python original draws them, whatever the policy does; with
// `own_sampler` it is the study's sampler that chooses. Poolbench knows no nodes: its all-reduce
// costs what the number of slots costs.
struct PoolbenchLoadOptions {
  PoolbenchRule rule = PoolbenchRule::kSqrt;
  std::uint64_t seed = 0;
  bool own_sampler = false;
};
std::unique_ptr<Workload> MakePoolbenchLoad(const PoolbenchLoadOptions& options);

// "sqrt" or "linear".
absl::StatusOr<PoolbenchRule> ParsePoolbenchRule(const std::string& name);

}  // namespace espalier
