#pragma once

#include <cstddef>
#include <stop_token>
#include <vector>

#include "tuner/core/samplers/tpe/parzen.h"
#include "tuner/core/samplers/tpe/placed_trials.h"
#include "tuner/core/samplers/tpe/split.h"

namespace espalier::samplers {

// What trials count as, and what is made of them.
struct TpeTrials {
  PlacedTrials& ended;  // of which only widths change
  const TpeSplit& split;
  std::vector<std::vector<double>> running;  // places of those that count as bad
  // Whether good trials weigh the same whatever their age, as with several objectives.
  bool good_are_even = false;
};

// The densities of good and of bad trials on some axes of the space.
struct TpeDensities {
  ParzenEstimator good;
  ParzenEstimator bad;

  // Logarithms of good over bad, of each point.
  std::vector<double> Ratios(std::span<const Point> points, const std::stop_token& stop = {}) const;

  // Of so many points, drawn from the density of good ones, the one with the largest ratio (which
  // is where improvement is to be expected: Bergstra et al. 2011, equation 4).
  Point Best(std::size_t candidates, const std::stop_token& stop, Random& random) const;
};

// Of those trials that have a value on each of the axes.
TpeDensities DensitiesOf(const TpeTrials& trials, const std::vector<std::size_t>& axes,
                         const ParzenSettings& settings);

// Of trials by age, the oldest first: the newest 25 weigh 1, the older ones less and less, down to
// 1/n (Bergstra et al. 2013, as in Hyperopt and Optuna).
std::vector<double> WeightsByAge(std::size_t n);

}  // namespace espalier::samplers
