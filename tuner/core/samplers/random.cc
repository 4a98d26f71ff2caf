#include "tuner/core/samplers/random.h"

#include "tuner/core/samplers/table.h"

namespace espalier::samplers {
namespace {

class RandomSampler final : public Sampler {
 public:
  std::optional<Parameters> Suggest(const SamplerInput& input, Random& random) const override {
    const std::optional<TriedConfigurations> tried = TriedConfigurations::Of(input);
    if (tried && tried->Exhausted()) return std::nullopt;
    return DrawNew(input.space, tried ? &*tried : nullptr, random);
  }
};

}  // namespace

Parameters DrawNew(const SearchSpace& space, const TriedConfigurations* tried, Random& random) {
  constexpr int kAttempts = 32;
  if (tried == nullptr) return space.Sample(random);
  for (int i = 0; i < kAttempts; ++i) {
    Parameters parameters = space.Sample(random);
    if (!tried->Contains(parameters)) return parameters;
  }
  return tried->DrawUntried(random);
}

Row RandomRow() {
  return {"random", {}, [](const Options&) -> std::unique_ptr<Sampler> {
            return std::make_unique<RandomSampler>();
          }};
}

}  // namespace espalier::samplers
