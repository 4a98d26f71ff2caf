#include "allocator/pool_size/pool_size.h"

namespace espalier {

namespace pool_size_rules {

PluginRow<PoolSizeRule> UtilityPriceRow();
PluginRow<PoolSizeRule> UtilityBandRow();
PluginRow<PoolSizeRule> LeastCostRow();

}  // namespace pool_size_rules

const PluginTable<PoolSizeRule>& PoolSizeRules() {
  static const PluginTable<PoolSizeRule> table{
      "pool-size rule",
      {
          pool_size_rules::UtilityPriceRow(),
          pool_size_rules::UtilityBandRow(),
          pool_size_rules::LeastCostRow(),
      },
  };
  return table;
}

absl::StatusOr<std::unique_ptr<PoolSizeRule>> MakePoolSizeRule(std::string_view name,
                                                               const Options& options) {
  return PoolSizeRules().Make(name, options);
}

}  // namespace espalier
