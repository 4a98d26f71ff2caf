#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>

#include "search_spaces/search_space.h"
#include "tuner/core/samplers/sampler.h"

namespace espalier::samplers::gp {

// What a Gaussian process says about how much a search may still gain. `trials` are complete, in
// the order in which they ended; those whose values are not finite, or that the space does not
// contain, are left out. Of conditional spaces all parameters are in the model, as in the
// sampler's. `seed` is that of 2,048 points drawn from the space. Once `stop` is asked for,
// anything is returned.

// So many of the trials make a model at most, the best ones: to fit one of more takes seconds.
inline constexpr std::size_t kMostRegretTrials = 200;

// Whether the space has a parameter with more than one value. Without one there are no bounds.
bool HasAxes(const SearchSpace& space);

// Which of the trials make the model of RegretBound.
struct RegretTrials {
  double best_share = 0.5;  // that part of them, the best ones, and all that are as good
  std::size_t least = 20;   // but so many, as far as there are
};

// A bound on how far the best of the trials is from the best value of the space, in units of the
// values (see RegretBoundOf in regret_bounds.h; with probability 0.9). nullopt: none of the trials
// is in the space, or it has no axes.
std::optional<double> RegretBound(const SearchSpace& space, Direction direction,
                                  std::span<const Observation* const> trials,
                                  const RegretTrials& which, std::uint64_t seed,
                                  const std::stop_token& stop);

struct RegretChangeSettings {
  double delta = 0.1;          // the chance that the confidence bounds do not hold
  bool deterministic = false;  // the same parameters give the same value
};

// A bound on what the last of the trials has changed in the expected minimum simple regret, in
// standard deviations of the values (see RegretChangeBoundOf). The model is fitted without that
// trial and with it. nullopt: as above, or of fewer than two trials.
std::optional<double> RegretChangeBound(const SearchSpace& space, Direction direction,
                                        std::span<const Observation* const> trials,
                                        const RegretChangeSettings& settings, std::uint64_t seed,
                                        const std::stop_token& stop);

// About how long RegretBound takes of so many trials in its model (see Sampler::Work);
// RegretChangeBound fits two.
double WorkOfRegretBound(std::size_t trials, const SearchSpace& space);

}  // namespace espalier::samplers::gp
