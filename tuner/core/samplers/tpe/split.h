#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tuner/core/samplers/sampler.h"

namespace espalier::samplers {

struct SplitSettings {
  double gamma = 0.1;          // share of the trials with a result that counts as good
  std::size_t most_good = 25;  // of a single objective: up to this many
  bool failed = true;          // whether failed trials count as bad, or not at all
};

// Which trials count as good and which as bad, as in Optuna 5.0.
struct TpeSplit {
  enum class Side : std::uint8_t { kGood, kBad, kNeither };

  std::vector<Side> sides;  // of input.ended
  std::size_t results = 0;  // trials that are complete or pruned
};

// Good is the given share of the trials with a result: first complete ones, then pruned ones by
// how far they came and then by value, then those that break constraints by how much in all. With
// several objectives pruned ones do not count for the share if there are others, so that those that
// a pruner has let run are not all good beside many that it has ended; they come by their fronts,
// and of the front that is good in part those that dominate the most volume together (Ozaki et al.
// 2022: Multiobjective Tree-Structured Parzen Estimator, section 4.2). A complete trial without a
// number for each objective, or with an infinity that would be better than every number, has
// failed.
TpeSplit SplitTrials(const SamplerInput& input, const SplitSettings& settings);

}  // namespace espalier::samplers
