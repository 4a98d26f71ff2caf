#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "base/random.h"
#include "search_spaces/search_space.h"
#include "tuner/core/population/score_changes.h"

namespace espalier {

// Of the changes of scores, so many at most make the model: those of the newest intervals. One
// suggestion of so many takes milliseconds, which the owner's thread can spare.
inline constexpr std::size_t kMostScoreChanges = 200;

// A takeover for which parameters are sought.
struct Takeover {
  std::size_t loser = 0;  // indices into the members
  std::size_t winner = 0;
  std::int64_t step = 0;  // at which they were compared, a multiple of the interval
};

// Population-based bandits, PB2 (Parker-Holder, Nguyen and Roberts, Provably Efficient Online
// Hyperparameter Optimization with Population-Based Bandits, NeurIPS 2020, algorithm 1): the
// winner's parameters, of which the explored ones are those that promise the largest change of the
// score in the next interval, by the upper confidence bound of a Gaussian process that varies with
// time (eq. 5 to 7 there). What other members are in the midst of is pending: it narrows the bound,
// so that takeovers at one step do not all choose alike.
//
// Values with which the clone would train what another trains already, as `trained` says of the
// whole parameters, are passed over, if there are others.
//
// What is explored is placed as the sampler "gp" places it, choices too. Changes count by their
// rank among those of the same interval, as normal scores (Salinas, Shen and Perrone, A Quantile-
// based Approach for Hyperparameter Transfer Learning, ICML 2020): of a loss that falls by half in
// each interval, or that has been at 1e30 once, nothing else would be left to see.
//
// Requires OK of CheckPerturbation. Of the same members and generator the same, on one build.
Parameters ExploreByBandit(const PopulationSpec& population, const SearchSpace& space,
                           Direction direction, std::span<const PopulationMember> members,
                           const Takeover& takeover,
                           const std::function<bool(const Parameters&)>& trained, Random& random);

}  // namespace espalier
