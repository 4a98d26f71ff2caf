#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "allocator/pool_size/pool_size.h"

namespace espalier::pool_size_rules {
namespace {

// As many nodes as trials that run or could, so many of them on each.
class PerTrial final : public PoolSizeRule {
 public:
  explicit PerTrial(double trials_per_node) : trials_per_node_(trials_per_node) {}

  PoolSizeDecision Decide(const PoolSizeRequest& request) override {
    auto trials = static_cast<double>(request.pool.jobs.size());
    for (const auto& [study, demand] : request.demand) trials += demand.configurations;
    const double wanted = std::clamp<double>(std::ceil(trials / trials_per_node_),
                                             request.node.min_nodes, request.node.max_nodes);
    return {static_cast<int>(wanted), absl::StrFormat("%g nodes for %g trials", wanted, trials)};
  }

 private:
  const double trials_per_node_;
};

}  // namespace

PluginRow<PoolSizeRule> PerTrialRow() {
  return {{.name = "per_trial",
           .summary = "as many nodes as there are trials to run",
           .options = {{.name = "trials_per_node",
                        .default_value = 1,
                        .least = 0.1,
                        .meaning = "trials that share a node"}}},
          [](const OptionValues& options) {
            return std::make_unique<PerTrial>(options["trials_per_node"]);
          }};
}

}  // namespace espalier::pool_size_rules
