#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tuner/core/state/curve.h"
#include "tuner/core/state/population_spec.h"

namespace espalier {

// The multiple of the interval up to which a member that has come to `step` is to be compared; 0:
// it has not come to the first.
std::int64_t ComparedAt(const PopulationSpec& population, std::int64_t step);

// Members that have come to a step, by what each told last at or before it: the best one first.
struct Ranking {
  struct Place {
    std::size_t member = 0;  // index into those given
    double value = 0;
  };
  std::vector<Place> places;
  std::size_t end = 0;  // so many of them at each end are among the best, and the worst
};

// PBT's truncation selection (Jaderberg et al. 2017, arXiv:1711.09846, section 4.1.1), with the
// quantiles of Ray Tune, at equal steps. `step` is a multiple of the interval.
//
// A member has come to `step` if it has told a value there or further on, and one since the
// interval before: who waited for a slot is neither ahead nor behind. Those that were replaced
// since then (PRUNED) count too, so that nobody comes to be among the worst in their place, and
// those that have completed; those that failed do not, nor those whose end does not count: they are
// members no more. Members that break a constraint are behind all that do not, and what does not
// count is worse than all that does; equal values are ordered by trial number.
//
// With a quantile q of n members an end has ceil(q n) of them once `all_have_come`, and floor(q n)
// until then, when the others may be worse or better; never more than half.
Ranking RankAt(const PopulationSpec& population, Direction direction,
               std::span<const Curve> members, bool all_have_come, std::int64_t step);

// Of the worst of the ranking those that are to be replaced, the worst one first: they have not
// ended, and are no more than those that were replaced before leave of them.
std::vector<Ranking::Place> Losers(const Ranking& ranking, std::span<const Curve> members);

// Those of the best that train on, for a loser to go on from one of them; none if no other is
// strictly better, at the ranking's step and by what both have told last.
std::vector<std::size_t> WinnersOver(const Ranking::Place& loser, const Ranking& ranking,
                                     Direction direction, std::span<const Curve> members);

}  // namespace espalier
