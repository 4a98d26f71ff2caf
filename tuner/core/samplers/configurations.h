#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "search_spaces/combinations.h"
#include "tuner/core/samplers/sampler.h"

namespace espalier::samplers {

// Which configurations of a finite space have been tried or are running.
class TriedConfigurations {
 public:
  // nullopt if the space is not finite, or so large (over 2^53) that a repetition cannot happen.
  static std::optional<TriedConfigurations> Of(const SamplerInput& input);

  bool Exhausted() const { return tried_.size() == combinations_.count(); }
  bool Contains(const Parameters& parameters) const;

  // Each untried configuration equally likely. Requires that there is one.
  Parameters DrawUntried(Random& random) const;

 private:
  explicit TriedConfigurations(const SearchSpace& space);

  std::optional<std::uint64_t> NumberOf(const Parameters& parameters) const;

  const SearchSpace* space_;
  Combinations combinations_;
  std::vector<std::uint64_t> tried_;  // ascending, each once
};

// The value of the i-th dimension; null if the parameters lack it, it is out of the space, or it is
// inactive by the choices it depends on.
const ParameterValue* ValueOf(const SearchSpace& space, std::size_t i,
                              const Parameters& parameters);

}  // namespace espalier::samplers
