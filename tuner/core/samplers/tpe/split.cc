#include "tuner/core/samplers/tpe/split.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "tuner/core/fronts/fronts.h"

namespace espalier::samplers {
namespace {

constexpr double kWorstLoss = std::numeric_limits<double>::infinity();

double Loss(Direction direction, double value) {
  return direction == Direction::kMinimize ? value : -value;
}

// A trial and what it is ranked by, the least first.
struct Ranked {
  std::size_t index;  // in input.ended
  std::array<double, 2> by;
  std::int64_t number;

  friend bool operator<(const Ranked& a, const Ranked& b) {
    if (a.by != b.by) return a.by < b.by;
    return a.number != b.number ? a.number < b.number : a.index < b.index;
  }
};

bool HasAllValues(const SamplerInput& input, const Observation& trial) {
  if (!Counts(input.direction, trial.value)) return false;
  if (trial.other_values.size() != input.other_directions.size()) return false;
  for (std::size_t i = 0; i < trial.other_values.size(); ++i) {
    if (!Counts(input.other_directions[i], trial.other_values[i])) return false;
  }
  return true;
}

struct Standings {
  std::vector<Ranked> complete;
  std::vector<Ranked> pruned;
  std::vector<Ranked> infeasible;
};

Standings StandingsOf(const SamplerInput& input) {
  Standings standings;
  for (std::size_t i = 0; i < input.ended.size(); ++i) {
    const Observation& trial = input.ended[i];
    const std::int64_t number = trial.trial_number;
    if (!trial.pruned && !HasAllValues(input, trial)) continue;
    const double violation = Violation(trial.constraints);
    if (violation > 0) {
      standings.infeasible.push_back({i, {violation, 0}, number});
      continue;
    }
    const double loss =
        Counts(input.direction, trial.value) ? Loss(input.direction, trial.value) : kWorstLoss;
    if (trial.pruned) {
      standings.pruned.push_back({i, {-static_cast<double>(trial.last_step), loss}, number});
    } else {
      standings.complete.push_back({i, {loss, 0}, number});
    }
  }
  return standings;
}

// As far from the front as a tenth of its worst values.
std::vector<double> ReferenceOf(const Losses& front) {
  std::vector<double> reference(front.objectives(), -kWorstLoss);
  for (std::size_t row = 0; row < front.size(); ++row) {
    for (std::size_t k = 0; k < reference.size(); ++k) {
      reference[k] = std::max(reference[k], front[row][k]);
    }
  }
  constexpr double kAtZero = 1e-12;
  for (double& worst : reference) {
    worst = worst == 0 ? kAtZero : std::max(1.1 * worst, 0.9 * worst);
  }
  return reference;
}

// The indices of `count` of these trials, fewer than all.
std::vector<std::size_t> BestByFronts(const SamplerInput& input, std::vector<Ranked> trials,
                                      std::size_t count) {
  std::sort(trials.begin(), trials.end(), [](const Ranked& a, const Ranked& b) {
    return a.number != b.number ? a.number < b.number : a.index < b.index;
  });
  Losses losses(input.objectives());
  for (const Ranked& trial : trials) {
    std::vector<double> row = {trial.by[0]};
    const Observation& seen = input.ended[trial.index];
    for (std::size_t i = 0; i < seen.other_values.size(); ++i) {
      row.push_back(Loss(input.other_directions[i], seen.other_values[i]));
    }
    losses.Add(row);
  }
  const std::vector<std::size_t> fronts = FrontNumbers(losses);
  std::vector<std::vector<std::size_t>> rows_of;
  for (std::size_t row = 0; row < fronts.size(); ++row) {
    if (fronts[row] >= rows_of.size()) rows_of.resize(fronts[row] + 1);
    rows_of[fronts[row]].push_back(row);
  }
  std::vector<std::size_t> best;
  for (const std::vector<std::size_t>& rows : rows_of) {
    const std::size_t room = count - best.size();
    if (rows.size() <= room) {
      for (const std::size_t row : rows) best.push_back(trials[row].index);
      continue;
    }
    if (room == 0) break;
    Losses front(losses.objectives());
    for (const std::size_t row : rows) front.Add(losses[row]);
    for (const std::size_t chosen : HypervolumeSubset(front, room, ReferenceOf(front))) {
      best.push_back(trials[rows[chosen]].index);
    }
    break;
  }
  return best;
}

std::vector<std::size_t> BestOf(std::vector<Ranked> trials, std::size_t count) {
  if (count < trials.size()) {
    std::nth_element(trials.begin(), trials.begin() + static_cast<std::ptrdiff_t>(count),
                     trials.end());
    trials.resize(count);
  }
  std::vector<std::size_t> best;
  for (const Ranked& trial : trials) best.push_back(trial.index);
  return best;
}

}  // namespace

TpeSplit SplitTrials(const SamplerInput& input, const SplitSettings& settings) {
  Standings standings = StandingsOf(input);
  TpeSplit split;
  split.results = standings.complete.size() + standings.pruned.size() + standings.infeasible.size();
  split.sides.assign(input.ended.size(),
                     settings.failed ? TpeSplit::Side::kBad : TpeSplit::Side::kNeither);
  const bool one = input.objectives() == 1;
  const std::size_t whole = split.results - standings.pruned.size();
  const std::size_t counted = !one && whole > 0 ? whole : split.results;
  const auto share =
      static_cast<std::size_t>(std::ceil(settings.gamma * static_cast<double>(counted)));
  std::size_t room = std::min(split.results, one ? std::min(share, settings.most_good) : share);
  const auto take = [&](std::vector<Ranked>& trials, bool by_fronts) {
    for (const Ranked& trial : trials) split.sides[trial.index] = TpeSplit::Side::kBad;
    const std::size_t count = std::min(room, trials.size());
    room -= count;
    const bool some = count > 0 && count < trials.size();
    const std::vector<std::size_t> best = by_fronts && some
                                              ? BestByFronts(input, std::move(trials), count)
                                              : BestOf(std::move(trials), count);
    for (const std::size_t index : best) split.sides[index] = TpeSplit::Side::kGood;
  };
  take(standings.complete, !one);
  take(standings.pruned, false);
  take(standings.infeasible, false);
  return split;
}

}  // namespace espalier::samplers
