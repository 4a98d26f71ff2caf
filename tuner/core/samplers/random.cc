#include "tuner/core/samplers/configurations.h"

namespace espalier::samplers {
namespace {

// Draws from the space, each parameter by its own distribution. Of a finite space no configuration
// twice, and none when all have been tried.
class RandomSampler final : public Sampler {
 public:
  std::optional<Parameters> Suggest(const SamplerInput& input, Random& random) const override {
    const TriedConfigurations tried(input);
    if (tried.Exhausted()) return std::nullopt;
    return tried.DrawNew(random);
  }
};

}  // namespace

PluginRow<Sampler> RandomRow() {
  return {{.name = "random", .summary = "draws from the space; what was tried is not drawn again"},
          [](const OptionValues&) { return std::make_unique<RandomSampler>(); }};
}

}  // namespace espalier::samplers
