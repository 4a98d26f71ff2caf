#include "tuner/core/population/score_changes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace espalier {

namespace {

constexpr int kMostIntervals = 1000;  // that are looked at

using Reports = std::span<const IntermediateValue>;

std::optional<ScoreChange> ChangeOf(std::span<const PopulationMember> members, std::size_t member,
                                    Direction direction, std::int64_t begin, std::int64_t end) {
  const Reports points = members[member].curve.points;
  const IntermediateValue* last = NewestUntil(points, end);
  if (last == nullptr || last->step <= begin) return std::nullopt;
  std::optional<IntermediateValue> first;
  if (const IntermediateValue* before = NewestUntil(points, begin)) {
    first = *before;
  } else if (members[member].parent) {
    first = ValueAtStep(members, *members[member].parent, points.front().step - 1);
  }
  if (!first) first = points.front();
  if (first->step >= last->step || !Counts(direction, first->value) || std::isinf(first->value)) {
    return std::nullopt;
  }
  double change = -std::numeric_limits<double>::infinity();
  if (std::isfinite(last->value)) {
    // Each by itself, so that no difference is beyond what doubles hold.
    const auto steps = static_cast<double>(last->step - first->step);
    change = last->value / steps - first->value / steps;
    if (direction == Direction::kMinimize) change = -change;
  }
  return ScoreChange{.member = member, .begin = begin, .change = change};
}

// The end of the newest interval that ends at `step` or before and in which anything was told; 0:
// nothing was. Steps may be samples, with thousands of intervals from one report to the next.
std::int64_t EndBefore(const PopulationSpec& population, std::span<const PopulationMember> members,
                       std::int64_t step) {
  std::int64_t told = 0;
  for (const PopulationMember& member : members) {
    const IntermediateValue* newest = NewestUntil(member.curve.points, step);
    if (newest != nullptr) told = std::max(told, newest->step);
  }
  if (told <= 0) return 0;
  const std::int64_t intervals_back = (step - told) / population.interval;
  return step - intervals_back * population.interval;
}

}  // namespace

std::optional<IntermediateValue> ValueAtStep(std::span<const PopulationMember> members,
                                             std::size_t member, std::int64_t step) {
  for (std::optional<std::size_t> at = member; at; at = members[*at].parent) {
    const Reports points = members[*at].curve.points;
    if (const IntermediateValue* newest = NewestUntil(points, step)) return *newest;
    // Of those before it in its line only that counts which it has gone on from.
    if (!points.empty()) step = std::min(step, points.front().step - 1);
  }
  return std::nullopt;
}

std::vector<ScoreChange> ScoreChanges(const PopulationSpec& population, Direction direction,
                                      std::span<const PopulationMember> members, std::int64_t step,
                                      std::size_t most) {
  std::vector<ScoreChange> changes;
  std::int64_t end = step;
  for (int looked = 0; end > 0 && looked < kMostIntervals; ++looked) {
    const std::size_t before = changes.size();
    for (std::size_t member = 0; member < members.size(); ++member) {
      const std::optional<ScoreChange> change =
          ChangeOf(members, member, direction, end - population.interval, end);
      if (change) changes.push_back(*change);
    }
    if (changes.size() > most && before > 0) {
      changes.resize(before);
      break;
    }
    end = EndBefore(population, members, end - population.interval);
  }
  return changes;
}

}  // namespace espalier
