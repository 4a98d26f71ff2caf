#include "tuner/core/pruners/pruner.h"

namespace espalier {

namespace pruners {

PluginRow<Pruner> NoneRow();
PluginRow<Pruner> MedianRow();
PluginRow<Pruner> AshaRow();
PluginRow<Pruner> AshaPromoteRow();
PluginRow<Pruner> HyperbandRow();
PluginRow<Pruner> PromiseRow();
PluginRow<Pruner> AshaPromiseRow();

}  // namespace pruners

const PluginTable<Pruner>& Pruners() {
  static const PluginTable<Pruner> table{
      "pruner",
      {
          pruners::NoneRow(),
          pruners::MedianRow(),
          pruners::AshaRow(),
          pruners::AshaPromoteRow(),
          pruners::HyperbandRow(),
          pruners::PromiseRow(),
          pruners::AshaPromiseRow(),
      },
  };
  return table;
}

absl::StatusOr<std::unique_ptr<Pruner>> MakePruner(std::string_view name, const Options& options) {
  return Pruners().Make(name, options);
}

}  // namespace espalier
