#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "search_spaces/combinations.h"
#include "tuner/core/samplers/sampler.h"

namespace espalier::samplers {

// The most configurations that are numbered.
inline constexpr std::uint64_t kMostNumbered = std::uint64_t{1} << 53;

// The number of this value among those of the i-th dimension; nullopt if it is none of them. Is
// called with values that the dimension's distribution contains.
using NumberOfValue =
    std::function<std::optional<std::uint64_t>(std::size_t i, const ParameterValue& value)>;

// Which of the combinations of active parameters these are; nullopt if they are none.
std::optional<std::uint64_t> CombinationOf(const SearchSpace& space,
                                           const Combinations& combinations,
                                           const NumberOfValue& number_of_value,
                                           const Parameters& parameters);

// Those that were tried or are running, ascending, each once.
std::vector<std::uint64_t> NumbersTried(const SamplerInput& input, const Combinations& combinations,
                                        const NumberOfValue& number_of_value);

// The configurations of a space that have been tried or are running. Of one that is not finite, or
// so large (over kMostNumbered) that a repetition cannot happen, none is known.
class TriedConfigurations {
 public:
  // The input's space must outlive this.
  explicit TriedConfigurations(const SamplerInput& input);

  // Whether the space's configurations are numbered, so that those tried are known.
  bool numbered() const { return combinations_.has_value(); }
  bool Exhausted() const { return numbered() && tried_.size() == combinations_->count(); }
  bool Contains(const Parameters& parameters) const;

  // A draw from the space; of a numbered one a configuration that was not tried before: first by
  // the space's own probabilities, and when those keep hitting what was tried, evenly among the
  // rest. Requires that it is not exhausted.
  Parameters DrawNew(Random& random) const;
  // Draws an untried configuration, each with the same probability. Requires that the space is
  // numbered and that there is one.
  Parameters DrawUntried(Random& random) const;

 private:
  const SearchSpace* space_;
  std::optional<Combinations> combinations_;
  std::vector<std::uint64_t> tried_;  // ascending, each once
};

// Whether a numbered space's configuration was tried or is running, by one look at each trial.
bool WasTried(const SamplerInput& input, const Parameters& parameters);

// The value of the i-th dimension; null if the parameters lack it, it is out of the space, or it is
// inactive by the choices it depends on.
const ParameterValue* ValueOf(const SearchSpace& space, std::size_t i,
                              const Parameters& parameters);

}  // namespace espalier::samplers
