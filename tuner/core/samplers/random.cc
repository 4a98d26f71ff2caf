#include "tuner/core/samplers/configurations.h"

namespace espalier::samplers {
namespace {

// Draws from the space, each parameter by its own distribution. Of a finite space no configuration
// twice, and none when all have been tried.
class RandomSampler final : public Sampler {
 public:
  std::optional<Parameters> Suggest(const SamplerInput& input, Random& random) const override {
    const std::optional<TriedConfigurations> tried = TriedConfigurations::Of(input);
    if (tried && tried->Exhausted()) return std::nullopt;
    return DrawNew(input.space, tried ? &*tried : nullptr, random);
  }
};

}  // namespace

PluginRow<Sampler> RandomRow() {
  return {{.name = "random", .summary = "draws from the space; what was tried is not drawn again"},
          [](const OptionValues&) { return std::make_unique<RandomSampler>(); }};
}

}  // namespace espalier::samplers
