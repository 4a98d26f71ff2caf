#include "tuner/core/samplers/configurations.h"

#include <algorithm>

#include "base/check.h"

namespace espalier::samplers {
namespace {

std::vector<std::uint64_t> CountsOf(const SearchSpace& space) {
  std::vector<std::uint64_t> counts;
  for (const auto& dimension : space.dimensions()) {
    counts.push_back(*Cardinality(dimension.distribution));
  }
  return counts;
}

}  // namespace

const ParameterValue* ValueOf(const SearchSpace& space, std::size_t i,
                              const Parameters& parameters) {
  const auto& [name, distribution, condition] = space.dimensions()[i];
  // Samplers' own parameters are in the space's order; a user's may be in any.
  const bool in_place = i < parameters.size() && parameters[i].name == name;
  const ParameterValue* value = in_place ? &parameters[i].value : Find(parameters, name);
  if (value == nullptr || (condition && !space.IsActive(i, parameters))) return nullptr;
  return Contains(distribution, *value) ? value : nullptr;
}

std::optional<std::uint64_t> CombinationOf(const SearchSpace& space,
                                           const Combinations& combinations,
                                           const NumberOfValue& number_of_value,
                                           const Parameters& parameters) {
  Combinations::Indices indices(space.dimensions().size());
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (!space.IsActive(i, parameters)) continue;
    const ParameterValue* value = ValueOf(space, i, parameters);
    if (value == nullptr) return std::nullopt;
    indices[i] = number_of_value(i, *value);
    if (!indices[i]) return std::nullopt;
  }
  return combinations.NumberOf(indices);
}

std::vector<std::uint64_t> NumbersTried(const SamplerInput& input, const Combinations& combinations,
                                        const NumberOfValue& number_of_value) {
  std::vector<std::uint64_t> tried;
  const auto add = [&](const Parameters& parameters) {
    const auto number = CombinationOf(input.space, combinations, number_of_value, parameters);
    if (number) tried.push_back(*number);
  };
  for (const Observation& observation : input.ended) add(*observation.parameters);
  for (const Parameters* parameters : input.running) add(*parameters);
  std::sort(tried.begin(), tried.end());
  tried.erase(std::unique(tried.begin(), tried.end()), tried.end());
  return tried;
}

std::optional<TriedConfigurations> TriedConfigurations::Of(const SamplerInput& input) {
  const std::optional<std::uint64_t> count = input.space.Cardinality();
  if (!count || *count > kMostNumbered) return std::nullopt;
  return TriedConfigurations(input);
}

TriedConfigurations::TriedConfigurations(const SamplerInput& input)
    : space_(&input.space),
      combinations_(input.space, CountsOf(input.space)),
      tried_(NumbersTried(input, combinations_, number_of_value())) {}

NumberOfValue TriedConfigurations::number_of_value() const {
  return [space = space_](std::size_t i, const ParameterValue& value) {
    return IndexOf(space->dimensions()[i].distribution, value);
  };
}

bool TriedConfigurations::Contains(const Parameters& parameters) const {
  const auto number = CombinationOf(*space_, combinations_, number_of_value(), parameters);
  return number && std::binary_search(tried_.begin(), tried_.end(), *number);
}

Parameters TriedConfigurations::DrawUntried(Random& random) const {
  ESPALIER_CHECK(!Exhausted(), "there is nothing untried");
  // The rank among the untried becomes a number by stepping over each tried one at or below it.
  std::uint64_t number = random.Below(combinations_.count() - tried_.size());
  for (const std::uint64_t tried : tried_) {
    if (tried > number) break;
    ++number;
  }
  const Combinations::Indices indices = *combinations_.At(number);
  const auto& dimensions = space_->dimensions();
  Parameters parameters;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    if (!indices[i]) continue;
    parameters.push_back({dimensions[i].name, ValueAt(dimensions[i].distribution, *indices[i])});
  }
  return parameters;
}

Parameters DrawNew(const SearchSpace& space, const TriedConfigurations* tried, Random& random) {
  constexpr int kAttempts = 32;
  if (tried == nullptr) return space.Sample(random);
  for (int i = 0; i < kAttempts; ++i) {
    Parameters parameters = space.Sample(random);
    if (!tried->Contains(parameters)) return parameters;
  }
  return tried->DrawUntried(random);
}

}  // namespace espalier::samplers
