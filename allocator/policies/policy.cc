#include "allocator/policies/policy.h"

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
  return Policies().Make(name, options);
}

}  // namespace espalier
