#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "search_spaces/combinations.h"
#include "tuner/core/samplers/sampler.h"

namespace espalier::samplers {

// The most configurations that are numbered.
inline constexpr std::uint64_t kMostNumbered = std::uint64_t{1} << 53;

// The configurations of a finite space that have been tried or are running.
class TriedConfigurations {
 public:
  // nullopt if the space is not finite, or so large (over kMostNumbered) that a repetition cannot
  // happen.
  static std::optional<TriedConfigurations> Of(const SamplerInput& input);

  bool Exhausted() const { return tried_.size() == combinations_.count(); }
  bool Contains(const Parameters& parameters) const;

  // Draws an untried configuration, each with the same probability. Requires that there is one.
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

// A draw from the space. Where it is finite, one that was not tried before: first by the space's
// own probabilities, and when those keep hitting what was tried, evenly among the rest. `tried` is
// null for a space that is not finite, and must not be exhausted.
Parameters DrawNew(const SearchSpace& space, const TriedConfigurations* tried, Random& random);

}  // namespace espalier::samplers
