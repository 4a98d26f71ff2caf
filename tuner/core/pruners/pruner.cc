#include "tuner/core/pruners/pruner.h"

namespace espalier {

namespace pruners {

PluginRow<Pruner> NoneRow();
PluginRow<Pruner> MedianRow();
PluginRow<Pruner> PercentileRow();
PluginRow<Pruner> ThresholdRow();
PluginRow<Pruner> AshaRow();
PluginRow<Pruner> AshaPromoteRow();
PluginRow<Pruner> HyperbandRow();
PluginRow<Pruner> SuccessiveHalvingRow();
PluginRow<Pruner> WilcoxonRow();
PluginRow<Pruner> PromiseRow();
PluginRow<Pruner> AshaPromiseRow();
PluginRow<Pruner> PatientRow();

}  // namespace pruners

const PluginTable<Pruner>& Pruners() {
  static const PluginTable<Pruner> table{
      "pruner",
      {
          pruners::NoneRow(),
          pruners::MedianRow(),
          pruners::PercentileRow(),
          pruners::ThresholdRow(),
          pruners::AshaRow(),
          pruners::AshaPromoteRow(),
          pruners::HyperbandRow(),
          pruners::SuccessiveHalvingRow(),
          pruners::WilcoxonRow(),
          pruners::PromiseRow(),
          pruners::AshaPromiseRow(),
          pruners::PatientRow(),
      },
  };
  return table;
}

absl::StatusOr<std::unique_ptr<Pruner>> MakePruner(std::string_view name, const Options& options) {
  return Pruners().Make(name, options);
}

}  // namespace espalier
