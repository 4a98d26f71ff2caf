#include "tuner/core/population/truncation.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"

namespace espalier {

namespace {

struct Compared {
  std::size_t member;
  std::int64_t trial_number;
  double value;
};

// None: the member has told nothing in the interval that ends with `step`.
std::optional<double> ValueIn(const Curve& curve, std::int64_t interval, std::int64_t step) {
  const auto after = std::upper_bound(
      curve.points.begin(), curve.points.end(), step,
      [](std::int64_t at, const IntermediateValue& point) { return at < point.step; });
  if (after == curve.points.begin()) return std::nullopt;
  const IntermediateValue& newest = *(after - 1);
  if (newest.step <= step - interval) return std::nullopt;
  return newest.value;
}

std::size_t InEachEnd(double quantile, std::size_t compared) {
  const auto all = static_cast<double>(compared);
  const double wanted = std::ceil(quantile * all);
  return static_cast<std::size_t>(wanted > all / 2 ? std::floor(all / 2) : wanted);
}

}  // namespace

std::int64_t ComparedAt(const PopulationSpec& population, std::int64_t step) {
  ESPALIER_CHECK(population.interval > 0, "an interval has a step at least");
  return step < 0 ? 0 : step / population.interval * population.interval;
}

std::optional<Exploit> Select(const PopulationSpec& population, Direction direction,
                              std::span<const Curve> members, std::size_t member, std::int64_t step,
                              Random& random) {
  ESPALIER_CHECK(member < members.size(), "the member is one of them");
  std::vector<Compared> ranked;  // the best one first
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].ended) continue;
    const std::optional<double> value = ValueIn(members[i], population.interval, step);
    if (value) ranked.push_back({i, members[i].trial_number, *value});
  }
  std::sort(ranked.begin(), ranked.end(), [direction](const Compared& a, const Compared& b) {
    if (Better(direction, a.value, b.value)) return true;
    if (Better(direction, b.value, a.value)) return false;
    return a.trial_number < b.trial_number;
  });
  const std::size_t end = InEachEnd(population.quantile, ranked.size());
  if (ranked.size() < 2 || end == 0) return std::nullopt;
  const auto losers = ranked.end() - static_cast<std::ptrdiff_t>(end);
  const auto loser = std::find_if(losers, ranked.end(),
                                  [member](const Compared& each) { return each.member == member; });
  if (loser == ranked.end()) return std::nullopt;
  const Compared& winner = ranked[random.Below(end)];
  if (!Better(direction, winner.value, loser->value)) return std::nullopt;
  return Exploit{.loser = member, .winner = winner.member, .step = step};
}

}  // namespace espalier
