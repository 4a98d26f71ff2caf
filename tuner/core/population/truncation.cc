#include "tuner/core/population/truncation.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"

namespace espalier {

namespace {

bool IsOrWasMember(const Curve& curve) { return !curve.ended || curve.pruned || curve.complete; }

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
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!IsOrWasMember(members[i])) continue;
    const std::optional<double> value = ValueAt(members[i], population.interval, step);
    if (value) ranking.places.push_back({i, *value});
  }
  const auto before = [&](const Ranking::Place& a, const Ranking::Place& b) {
    const Curve& one = members[a.member];
    const Curve& other = members[b.member];
    if (one.breaks != other.breaks) return other.breaks;
    if (Better(direction, a.value, b.value)) return true;
    if (Better(direction, b.value, a.value)) return false;
    return one.trial_number < other.trial_number;
  };
  std::sort(ranking.places.begin(), ranking.places.end(), before);
  ranking.end = InEachEnd(population.quantile, ranking.places.size(), all_have_come);
  return ranking;
}

std::vector<Ranking::Place> Losers(const Ranking& ranking, std::span<const Curve> members) {
  const auto replaced = std::ranges::count_if(
      ranking.places, [&](const Ranking::Place& place) { return members[place.member].pruned; });
  std::vector<Ranking::Place> losers;
  for (std::size_t i = 0; i < ranking.end; ++i) {
    const Ranking::Place& place = ranking.places[ranking.places.size() - 1 - i];
    if (std::cmp_less_equal(ranking.end, losers.size() + static_cast<std::size_t>(replaced))) break;
    if (!members[place.member].ended) losers.push_back(place);
  }
  return losers;
}

std::vector<std::size_t> WinnersOver(const Ranking::Place& loser, const Ranking& ranking,
                                     Direction direction, std::span<const Curve> members) {
  const Curve& own = members[loser.member];
  const auto better = [&](const Ranking::Place& place) {
    const Curve& other = members[place.member];
    if (other.breaks != own.breaks) return own.breaks;
    return Better(direction, place.value, loser.value) &&
           Better(direction, other.points.back().value, own.points.back().value);
  };
  std::vector<std::size_t> winners;
  for (std::size_t i = 0; i < ranking.end; ++i) {
    const Ranking::Place& place = ranking.places[i];
    const Curve& other = members[place.member];
    if (!other.ended && !other.breaks && better(place)) winners.push_back(place.member);
  }
  return winners;
}

}  // namespace espalier
