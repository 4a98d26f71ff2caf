#include "tuner/core/samplers/sampler.h"

namespace espalier {

namespace samplers {

PluginRow<Sampler> RandomRow();
PluginRow<Sampler> GridRow();
PluginRow<Sampler> TpeRow();
PluginRow<Sampler> Nsga2Row();
PluginRow<Sampler> Nsga3Row();
PluginRow<Sampler> CmaEsRow();
PluginRow<Sampler> QmcRow();
PluginRow<Sampler> BruteForceRow();
PluginRow<Sampler> GpRow();
PluginRow<Sampler> AutoRow();
PluginRow<Sampler> OptunaRow();
PluginRow<Sampler> QueueRow();

}  // namespace samplers

const PluginTable<Sampler>& Samplers() {
  static const PluginTable<Sampler> table{
      "sampler",
      std::vector<PluginRow<Sampler>>{
          samplers::RandomRow(),
          samplers::GridRow(),
          samplers::TpeRow(),
          samplers::Nsga2Row(),
          samplers::Nsga3Row(),
          samplers::CmaEsRow(),
          samplers::QmcRow(),
          samplers::BruteForceRow(),
          samplers::GpRow(),
          samplers::AutoRow(),
          samplers::OptunaRow(),
          samplers::QueueRow(),
      },
  };
  return table;
}

absl::StatusOr<std::unique_ptr<Sampler>> MakeSampler(std::string_view name,
                                                     const Options& options) {
  return Samplers().Make(name, options);
}

}  // namespace espalier
