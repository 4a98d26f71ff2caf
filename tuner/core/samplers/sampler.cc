#include "tuner/core/samplers/sampler.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

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

std::string SamplersThat(bool (Sampler::*can)() const) {
  std::vector<std::string> names;
  for (const std::string& name : Samplers().Names()) {
    const auto sampler = MakeSampler(name, {});
    if (!sampler.ok() || !(*sampler)->draws() || !(**sampler.*can)()) continue;
    names.push_back(absl::StrCat("\"", name, "\""));
  }
  return absl::StrJoin(names, ", ");
}

absl::StatusOr<std::unique_ptr<Sampler>> MakeSampler(std::string_view name,
                                                     const Options& options) {
  return Samplers().Make(name, options);
}

}  // namespace espalier
