#include "tuner/core/samplers/configurations.h"

#include <algorithm>

#include "tuner/base/check.h"

namespace espalier::samplers {

const ParameterValue* ValueOf(const SearchSpace& space, std::size_t i,
                              const Parameters& parameters) {
  const auto& [name, distribution] = space.dimensions()[i];
  // Samplers' own parameters are in the space's order; a user's may be in any.
  const bool in_place = i < parameters.size() && parameters[i].name == name;
  const ParameterValue* value = in_place ? &parameters[i].value : Find(parameters, name);
  return value != nullptr && Contains(distribution, *value) ? value : nullptr;
}

std::optional<TriedConfigurations> TriedConfigurations::Of(const SamplerInput& input) {
  constexpr std::uint64_t kMostNumbered = std::uint64_t{1} << 53;
  const std::optional<std::uint64_t> count = input.space.Cardinality();
  if (!count || *count > kMostNumbered) return std::nullopt;
  TriedConfigurations result(input.space, *count);
  const auto add = [&result](const Parameters* parameters) {
    if (const auto number = result.NumberOf(*parameters)) result.tried_.push_back(*number);
  };
  for (const Observation& observation : input.ended) add(observation.parameters);
  for (const Parameters* parameters : input.running) add(parameters);
  std::sort(result.tried_.begin(), result.tried_.end());
  result.tried_.erase(std::unique(result.tried_.begin(), result.tried_.end()), result.tried_.end());
  return result;
}

std::optional<std::uint64_t> TriedConfigurations::NumberOf(const Parameters& parameters) const {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < space_->dimensions().size(); ++i) {
    const ParameterValue* value = ValueOf(*space_, i, parameters);
    if (value == nullptr) return std::nullopt;
    const Distribution& distribution = space_->dimensions()[i].distribution;
    number = number * *Cardinality(distribution) + *IndexOf(distribution, *value);
  }
  return number;
}

bool TriedConfigurations::Contains(const Parameters& parameters) const {
  const std::optional<std::uint64_t> number = NumberOf(parameters);
  return number && std::binary_search(tried_.begin(), tried_.end(), *number);
}

Parameters TriedConfigurations::DrawUntried(Random& random) const {
  ESPALIER_CHECK(!Exhausted(), "there is nothing untried");
  // The rank among the untried becomes a number by stepping over each tried one at or below it.
  std::uint64_t number = random.Below(count_ - tried_.size());
  for (const std::uint64_t tried : tried_) {
    if (tried > number) break;
    ++number;
  }
  const auto& dimensions = space_->dimensions();
  Parameters parameters(dimensions.size());
  for (std::size_t i = dimensions.size(); i-- > 0;) {
    const std::uint64_t count = *Cardinality(dimensions[i].distribution);
    parameters[i] = {dimensions[i].name, ValueAt(dimensions[i].distribution, number % count)};
    number /= count;
  }
  return parameters;
}

}  // namespace espalier::samplers
