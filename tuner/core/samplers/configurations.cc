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

// Where they are numbered.
std::optional<Combinations> CombinationsOf(const SearchSpace& space) {
  const std::optional<std::uint64_t> count = space.Cardinality();
  if (!count || *count > kMostNumbered) return std::nullopt;
  return Combinations(space, CountsOf(space));
}

NumberOfValue NumberingOf(const SearchSpace& space) {
  return [&space](std::size_t i, const ParameterValue& value) {
    return IndexOf(space.dimensions()[i].distribution, value);
  };
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

TriedConfigurations::TriedConfigurations(const SamplerInput& input)
    : space_(&input.space), combinations_(CombinationsOf(input.space)) {
  if (numbered()) tried_ = NumbersTried(input, *combinations_, NumberingOf(*space_));
}

bool TriedConfigurations::Contains(const Parameters& parameters) const {
  if (!numbered()) return false;
  const auto number = CombinationOf(*space_, *combinations_, NumberingOf(*space_), parameters);
  return number && std::binary_search(tried_.begin(), tried_.end(), *number);
}

Parameters TriedConfigurations::DrawUntried(Random& random) const {
  ESPALIER_CHECK(numbered() && !Exhausted(), "there is nothing untried");
  // The rank among the untried becomes a number by stepping over each tried one at or below it.
  std::uint64_t number = random.Below(combinations_->count() - tried_.size());
  for (const std::uint64_t tried : tried_) {
    if (tried > number) break;
    ++number;
  }
  const Combinations::Indices indices = *combinations_->At(number);
  const auto& dimensions = space_->dimensions();
  Parameters parameters;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    if (!indices[i]) continue;
    parameters.push_back({dimensions[i].name, ValueAt(dimensions[i].distribution, *indices[i])});
  }
  return parameters;
}

Parameters TriedConfigurations::DrawNew(Random& random) const {
  constexpr int kAttempts = 32;
  if (!numbered()) return space_->Sample(random);
  for (int i = 0; i < kAttempts; ++i) {
    Parameters parameters = space_->Sample(random);
    if (!Contains(parameters)) return parameters;
  }
  return DrawUntried(random);
}

bool WasTried(const SamplerInput& input, const Parameters& parameters) {
  const std::optional<Combinations> combinations = CombinationsOf(input.space);
  if (!combinations) return false;
  const NumberOfValue numbering = NumberingOf(input.space);
  const auto number_of = [&](const Parameters& tried) {
    return CombinationOf(input.space, *combinations, numbering, tried);
  };
  const std::optional<std::uint64_t> number = number_of(parameters);
  if (!number) return false;
  const auto is_it = [&](const Parameters* tried) { return number_of(*tried) == number; };
  return std::ranges::any_of(input.ended, is_it, &Observation::parameters) ||
         std::ranges::any_of(input.running, is_it);
}

}  // namespace espalier::samplers
