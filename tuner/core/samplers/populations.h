#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "tuner/core/fronts/fronts.h"
#include "tuner/core/samplers/sampler.h"

namespace espalier::samplers {

// What genetic samplers make of a study's history: generations of trials, and who of them become
// parents (Deb et al. 2002, section III C).

// A trial that takes part.
struct Individual {
  const Observation* trial = nullptr;
  double violation = 0;  // of its constraints
};

// In the order in which their results came.
using Population = std::vector<Individual>;

std::vector<Direction> DirectionsOf(const SamplerInput& input);

// What they came to, a row each: as it is, or so that less is better.
Losses ValuesOf(const Population& population, std::size_t objectives);
Losses LossesOf(const Population& population, const std::vector<Direction>& directions);

// Whether a is to be preferred to b as a parent: of two complete trials that keep to their
// constraints one that dominates the other, else the one that breaks less; and any complete trial
// to a pruned one, of which the one that got further is to be preferred.
bool Preferred(const Individual& a, const Individual& b, const std::vector<Direction>& directions);

// Picks `count` of a front that survive beside those that are chosen already; by their places in
// the front, which has more. All are complete. `generation` is the number of the one whose parents
// are chosen, from 1.
struct Selection {
  const Population& chosen;
  const Population& front;
  std::size_t count;
  std::uint64_t generation;
  const std::vector<Direction>& directions;
};
using Select = std::function<std::vector<std::size_t>(const Selection&)>;

// The parents of the trial to come. Every `size` results make a generation, in the order in which
// they came. The parents of the next one are the best `size` of it and its own parents: front after
// front, and of the front that does not fit whole, those that `select` picks. Empty in the first
// generation.
//
// Complete trials take part whose values count, and pruned ones, behind all complete ones. Failed
// trials do not, nor do those whose parameters are not of the space.
Population ParentsOf(const SamplerInput& input, std::size_t size, const Select& select);

}  // namespace espalier::samplers
