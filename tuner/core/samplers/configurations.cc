#include "tuner/core/samplers/configurations.h"

#include <algorithm>

#include "tuner/base/check.h"

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

std::optional<TriedConfigurations> TriedConfigurations::Of(const SamplerInput& input) {
  const std::optional<std::uint64_t> count = input.space.Cardinality();
  if (!count || *count > kMostNumbered) return std::nullopt;
  TriedConfigurations result(input.space);
  const auto add = [&result](const Parameters* parameters) {
    if (const auto number = result.NumberOf(*parameters)) result.tried_.push_back(*number);
  };
  for (const Observation& observation : input.ended) add(observation.parameters);
  for (const Parameters* parameters : input.running) add(parameters);
  std::sort(result.tried_.begin(), result.tried_.end());
  result.tried_.erase(std::unique(result.tried_.begin(), result.tried_.end()), result.tried_.end());
  return result;
}

TriedConfigurations::TriedConfigurations(const SearchSpace& space)
    : space_(&space), combinations_(space, CountsOf(space)) {}

std::optional<std::uint64_t> TriedConfigurations::NumberOf(const Parameters& parameters) const {
  const auto& dimensions = space_->dimensions();
  Combinations::Indices indices(dimensions.size());
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    if (dimensions[i].condition && !space_->IsActive(i, parameters)) continue;
    const ParameterValue* value = ValueOf(*space_, i, parameters);
    if (value == nullptr) return std::nullopt;
    indices[i] = *IndexOf(dimensions[i].distribution, *value);
  }
  return combinations_.NumberOf(indices);
}

bool TriedConfigurations::Contains(const Parameters& parameters) const {
  const std::optional<std::uint64_t> number = NumberOf(parameters);
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
