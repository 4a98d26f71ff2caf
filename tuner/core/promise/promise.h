#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tuner/core/promise/forecast.h"
#include "tuner/core/state/curve.h"

namespace espalier {

inline constexpr int kMostBestK = 1000;  // the time of a top-k probability grows with k

struct PromiseOptions {
  int best_k = 1;
  std::int64_t max_step = 0;  // where a trial's curve ends; 0: unknown, the longest curve's end
  // Of further objectives, which curves have as `others`.
  std::vector<Direction> other_directions{};
};

// For each curve the probability that its trial ends among the study's best k by final value, all
// given trials that can still end well being its rivals. In [0, 1]; the sum is k, up to the error
// of a numerical integral, when at least k trials can still end well.
//
// With several objectives it is the probability to end on their Pareto front (front.h), each
// objective's end being forecast by itself, and best_k is of no account.
//
// A trial that breaks a constraint is no rival: it has 0 once it has ended, and before that, while
// it may still come to keep it, a millionth, but others learn from its curve.
//
// A trial that was pruned, failed or last reported what is not finite has 0; a complete one ends at
// its last value for certain. The end of any other is forecast twice: from its own curve
// (extrapolation.h), and by what other curves did from its step on (continuation.h). The two are
// joined with the weight of their precisions, so that the one that knows more on this study counts
// more. One without a point yet has the distribution of the study's ends. No forecast is certain,
// so that a trial that runs has at least a millionth. Deterministic, pure; about a millisecond for
// a hundred trials, and n log n for many thousands.
std::vector<double> Promise(Direction direction, std::span<const Curve> curves,
                            const PromiseOptions& options);

// The forecasts behind it, of the curves that `wanted` names by index. Costs are relative to one
// another: only differences count. Of the first objective alone.
std::vector<Forecast> ForecastEnds(Direction direction, std::span<const Curve> curves,
                                   std::span<const std::size_t> wanted,
                                   const PromiseOptions& options);

}  // namespace espalier
