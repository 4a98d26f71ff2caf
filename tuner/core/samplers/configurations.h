#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tuner/core/samplers/sampler.h"

namespace espalier::samplers {

// Which configurations of a finite space have been tried or are running. A configuration's number
// counts like an odometer, the space's last parameter fastest.
class TriedConfigurations {
 public:
  // nullopt if the space is not finite, or so large (over 2^53) that a repetition cannot happen.
  static std::optional<TriedConfigurations> Of(const SamplerInput& input);

  bool Exhausted() const { return tried_.size() == count_; }
  bool Contains(const Parameters& parameters) const;

  // Each untried configuration equally likely. Requires that there is one.
  Parameters DrawUntried(Random& random) const;

 private:
  TriedConfigurations(const SearchSpace& space, std::uint64_t count)
      : space_(&space), count_(count) {}

  std::optional<std::uint64_t> NumberOf(const Parameters& parameters) const;

  const SearchSpace* space_;
  std::uint64_t count_;
  std::vector<std::uint64_t> tried_;  // ascending, each once
};

// The value of the i-th dimension; null if the parameters lack it or it is out of the space.
const ParameterValue* ValueOf(const SearchSpace& space, std::size_t i,
                              const Parameters& parameters);

}  // namespace espalier::samplers
