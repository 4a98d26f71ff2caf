#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tuner/core/curve.h"

namespace espalier {

struct PromiseOptions {
  int best_k = 1;
  std::int64_t max_step = 0;  // where a trial's curve ends; 0: unknown, the longest curve's end
};

// For each curve the probability that its trial ends among the study's best k by final value, all
// given trials that can still end well being its rivals. In [0, 1]; the sum is k, up to the error
// of a numerical integral, when at least k trials can still end well.
//
// A trial that was pruned, failed or last reported what is not finite has 0; a complete one ends at
// its last value for certain. The end of any other is predicted by what other curves did from its
// step on (continuation.h), as a normal distribution; one without a point yet has the
// distribution of the whole study's ends. Deterministic, pure; about n log n for n curves, and at
// most a few milliseconds for some hundred running trials.
std::vector<double> Promise(Direction direction, std::span<const Curve> curves,
                            const PromiseOptions& options);

}  // namespace espalier
