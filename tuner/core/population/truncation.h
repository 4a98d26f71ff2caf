#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/random.h"
#include "tuner/core/state/curve.h"
#include "tuner/core/state/population_spec.h"

namespace espalier {

struct Exploit {
  std::size_t loser = 0;  // indices into the members
  std::size_t winner = 0;
  std::int64_t step = 0;  // at which they were compared
};

// The multiple of the interval up to which a member that has come to `step` is to be compared; 0:
// it has not come to the first.
std::int64_t ComparedAt(const PopulationSpec& population, std::int64_t step);

// PBT's truncation selection (Jaderberg et al. 2017, arXiv:1711.09846, section 4.1.1), with the
// quantiles of Ray Tune. Whether the member, which has come to `step`, should go on with the state
// of another, and of which. `step` is a multiple of the interval.
//
// Members are compared at equal steps: by their newest value at or before `step`, however much
// further they are. One that has told none since the interval before is not compared: it may have
// waited for a slot, and is neither ahead nor behind. Nor are those that have ended.
//
// Of n compared members ceil(quantile n) at each end are losers and winners, or floor(n / 2) where
// that would be more than half. Equal values are ordered by trial number, and what does not count
// is worse than all that does. The winner is any of its end, each as likely. Nobody takes over from
// a member that is not strictly better. The order of `members` does not matter to who is compared.
std::optional<Exploit> Select(const PopulationSpec& population, Direction direction,
                              std::span<const Curve> members, std::size_t member, std::int64_t step,
                              Random& random);

}  // namespace espalier
