#include "allocator/policies/policy.h"

#include <utility>

#include "allocator/policies/within_bounds.h"
#include "base/status.h"

namespace espalier {

namespace policies {

PluginRow<Policy> FixedRow();
PluginRow<Policy> FluidRow();
PluginRow<Policy> HyperSchedRow();
PluginRow<Policy> OptimusRow();
PluginRow<Policy> PolluxRow();
PluginRow<Policy> PromiseGoodputRow();
PluginRow<Policy> ScalingEfficiencyRow();
PluginRow<Policy> SiaPolicyRow();
PluginRow<Policy> TiresiasRow();
PluginRow<Policy> TopJobRow();
PluginRow<Policy> UtilityCostRow();

}  // namespace policies

const PluginTable<Policy>& Policies() {
  static const PluginTable<Policy> table{
      "policy",
      {
          policies::FixedRow(),
          policies::FluidRow(),
          policies::HyperSchedRow(),
          policies::OptimusRow(),
          policies::PolluxRow(),
          policies::PromiseGoodputRow(),
          policies::ScalingEfficiencyRow(),
          policies::SiaPolicyRow(),
          policies::TiresiasRow(),
          policies::TopJobRow(),
          policies::UtilityCostRow(),
      },
  };
  return table;
}

absl::StatusOr<std::unique_ptr<Policy>> MakePolicy(std::string_view name, const Options& options) {
  ESPALIER_ASSIGN_OR_RETURN(std::unique_ptr<Policy> policy, Policies().Make(name, options));
  return WithinBounds(std::move(policy));
}

}  // namespace espalier
