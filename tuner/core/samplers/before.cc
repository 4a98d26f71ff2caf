#include "tuner/core/samplers/before.h"

#include <algorithm>
#include <utility>

namespace espalier::samplers {

std::vector<Parameters> CompletedBefore(const SamplerInput& input) {
  const std::uint64_t seed = MixSeed(input.study_seed, "before");
  const auto& dimensions = input.space.dimensions();
  std::vector<Parameters> completed;
  for (std::size_t t = 0; t < input.before.size(); ++t) {
    Random random(MixSeed(seed, t));
    Parameters all;
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
      if (!input.space.IsActive(i, all)) continue;
      const auto& [name, distribution, _] = dimensions[i];
      const ParameterValue* value = Find(input.before[t].parameters, name);
      const bool known = value != nullptr && Contains(distribution, *value);
      all.push_back({name, known ? *value : Draw(distribution, random)});
    }
    completed.push_back(std::move(all));
  }
  return completed;
}

std::vector<bool> SharedDimensions(const SamplerInput& input) {
  std::vector<bool> shared;
  for (const auto& dimension : input.space.dimensions()) {
    shared.push_back(
        std::any_of(input.before.begin(), input.before.end(), [&](const ScoredTrial& trial) {
          const ParameterValue* value = Find(trial.parameters, dimension.name);
          return value != nullptr && Contains(dimension.distribution, *value);
        }));
  }
  return shared;
}

}  // namespace espalier::samplers
