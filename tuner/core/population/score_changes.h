#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "search_spaces/parameter.h"
#include "tuner/core/state/curve.h"
#include "tuner/core/state/population_spec.h"

namespace espalier {

// A member, past or present, as the bandit learns from it.
struct PopulationMember {
  Curve curve{};
  const Parameters* parameters = nullptr;  // must outlive this
  std::optional<std::size_t> parent{};     // the earlier one whose training it goes on with
  std::int64_t step = 0;                   // how far it has come, also by its parent's steps
};

// What one interval of training with a member's parameters has changed.
struct ScoreChange {
  std::size_t member = 0;
  std::int64_t begin = 0;  // a multiple of the population's interval
  double change = 0;       // of the value in a step; larger is better, -infinity: it does not count
};

// Of all intervals that had ended at `step`, a multiple of the population's, the newest ones first
// and of an interval the members in their order: as many whole ones as have `most` changes, and
// always the newest.
//
// A change is from the newest value at the interval's begin, or the first one in it, to the newest
// at its end. A clone begins with the newest value that its line had told before its own first, so
// that its interval may be shorter. There is none of a member that has told one value in it, or
// that began with one that does not count.
std::vector<ScoreChange> ScoreChanges(const PopulationSpec& population, Direction direction,
                                      std::span<const PopulationMember> members, std::int64_t step,
                                      std::size_t most);

// A member's newest value at `step` or before, its line's where it has told none until then. None:
// nobody of its line has.
std::optional<IntermediateValue> ValueAtStep(std::span<const PopulationMember> members,
                                             std::size_t member, std::int64_t step);

}  // namespace espalier
