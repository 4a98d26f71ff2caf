#include "tuner/core/population/truncation.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/check.h"

namespace espalier {

namespace {

// None: the member has not come to `step`, or has told nothing in the interval that ends with it.
std::optional<double> ValueAt(const Curve& curve, std::int64_t interval, std::int64_t step) {
  if (curve.points.empty() || curve.points.back().step < step) return std::nullopt;
  const IntermediateValue* newest = NewestUntil(curve.points, step);
  if (newest == nullptr || newest->step <= step - interval) return std::nullopt;
  return newest->value;
}

std::size_t InEachEnd(double quantile, std::size_t compared, bool all) {
  const double wanted = quantile * static_cast<double>(compared);
  const std::size_t half = compared / 2;
  const auto most = static_cast<double>(half);
  return static_cast<std::size_t>(std::min(all ? std::ceil(wanted) : std::floor(wanted), most));
}

}  // namespace

std::int64_t ComparedAt(const PopulationSpec& population, std::int64_t step) {
  ESPALIER_CHECK(population.interval > 0, "an interval has a step at least");
  return step < 0 ? 0 : step / population.interval * population.interval;
}

Ranking RankAt(const PopulationSpec& population, Direction direction,
               std::span<const Curve> members, bool all_have_come, std::int64_t step) {
  Ranking ranking;
  std::vector<double> values(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::optional<double> value = ValueAt(members[i], population.interval, step);
    if (!value) continue;
    values[i] = *value;
    ranking.members.push_back(i);
  }
  std::sort(ranking.members.begin(), ranking.members.end(), [&](std::size_t a, std::size_t b) {
    if (members[a].breaks != members[b].breaks) return members[b].breaks;
    if (Better(direction, values[a], values[b])) return true;
    if (Better(direction, values[b], values[a])) return false;
    return members[a].trial_number < members[b].trial_number;
  });
  ranking.end = InEachEnd(population.quantile, ranking.members.size(), all_have_come);
  return ranking;
}

std::vector<std::size_t> Losers(const Ranking& ranking, std::span<const Curve> members) {
  const auto replaced = std::ranges::count_if(ranking.members, [&](std::size_t member) {
    return members[member].ended && !members[member].complete;
  });
  std::vector<std::size_t> losers;
  for (std::size_t i = 0; i < ranking.end; ++i) {
    const std::size_t member = ranking.members[ranking.members.size() - 1 - i];
    if (std::cmp_less_equal(ranking.end, losers.size() + static_cast<std::size_t>(replaced))) break;
    if (!members[member].ended) losers.push_back(member);
  }
  return losers;
}

std::optional<std::size_t> WinnerOver(std::size_t member, const Ranking& ranking,
                                      Direction direction, std::span<const Curve> members,
                                      std::int64_t step, Random& random) {
  const auto better = [&](const Curve& other) {
    if (other.breaks != members[member].breaks) return members[member].breaks;
    // Both have come to the step, so that an interval as long as it is finds their values.
    return Better(direction, *ValueAt(other, step, step), *ValueAt(members[member], step, step)) &&
           Better(direction, other.points.back().value, members[member].points.back().value);
  };
  std::vector<std::size_t> winners;
  for (std::size_t i = 0; i < ranking.end; ++i) {
    const Curve& other = members[ranking.members[i]];
    if (!other.ended && !other.breaks && better(other)) winners.push_back(ranking.members[i]);
  }
  if (winners.empty()) return std::nullopt;
  return winners[random.Below(winners.size())];
}

}  // namespace espalier
