#include "tuner/core/samplers/populations.h"

#include <algorithm>
#include <utility>

#include "tuner/core/samplers/configurations.h"

namespace espalier::samplers {
namespace {

double ObjectiveOf(const Observation& trial, std::size_t k) {
  return k == 0 ? trial.value : trial.other_values[k - 1];
}

double LossOf(const Observation& trial, std::size_t k, const std::vector<Direction>& directions) {
  const double value = ObjectiveOf(trial, k);
  return directions[k] == Direction::kMinimize ? value : -value;
}

bool CountsInAll(const Observation& trial, const std::vector<Direction>& directions) {
  if (trial.other_values.size() + 1 != directions.size()) return false;
  for (std::size_t k = 0; k < directions.size(); ++k) {
    if (!Counts(directions[k], ObjectiveOf(trial, k))) return false;
  }
  return true;
}

bool IsOfSpace(const SearchSpace& space, const Parameters& parameters) {
  const auto& dimensions = space.dimensions();
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    if (dimensions[i].condition && !space.IsActive(i, parameters)) continue;
    if (ValueOf(space, i, parameters) == nullptr) return false;
  }
  return true;
}

bool CameBefore(const Individual& a, const Individual& b) {
  if (a.trial->at != b.trial->at) return a.trial->at < b.trial->at;
  return a.trial->trial_number < b.trial->trial_number;
}

Population TakingPart(const SamplerInput& input, const std::vector<Direction>& directions) {
  Population all;
  for (const Observation& trial : input.ended) {
    // A pruned one of several objectives may have a value of the first alone.
    const bool counts =
        trial.pruned ? Counts(input.direction, trial.value) : CountsInAll(trial, directions);
    if (!counts || !IsOfSpace(input.space, *trial.parameters)) continue;
    all.push_back({&trial, Violation(trial.constraints)});
  }
  if (!std::is_sorted(all.begin(), all.end(), CameBefore)) {
    std::sort(all.begin(), all.end(), CameBefore);
  }
  return all;
}

// Whether a is nowhere worse than b, and somewhere better.
bool DominatesInValues(const Individual& a, const Individual& b,
                       const std::vector<Direction>& directions) {
  bool better = false;
  for (std::size_t k = 0; k < directions.size(); ++k) {
    const double own = LossOf(*a.trial, k, directions);
    const double other = LossOf(*b.trial, k, directions);
    if (own > other) return false;
    better = better || own < other;
  }
  return better;
}

bool GotFurther(const Individual& a, const Individual& b,
                const std::vector<Direction>& directions) {
  if (a.trial->last_step != b.trial->last_step) return a.trial->last_step > b.trial->last_step;
  if (directions.size() > 1) return false;
  return LossOf(*a.trial, 0, directions) < LossOf(*b.trial, 0, directions);
}

// The best first: the fronts of complete trials, then pruned ones, each a front by itself.
std::vector<Population> FrontsIn(const Population& population,
                                 const std::vector<Direction>& directions) {
  Population complete, pruned;
  std::vector<double> violations;
  for (const Individual& individual : population) {
    (individual.trial->pruned ? pruned : complete).push_back(individual);
    if (!individual.trial->pruned) violations.push_back(individual.violation);
  }
  const std::vector<std::size_t> numbers = FrontNumbers(LossesOf(complete, directions), violations);
  std::vector<Population> fronts;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] >= fronts.size()) fronts.resize(numbers[i] + 1);
    fronts[numbers[i]].push_back(complete[i]);
  }
  std::stable_sort(pruned.begin(), pruned.end(), [&](const Individual& a, const Individual& b) {
    return GotFurther(a, b, directions);
  });
  for (const Individual& individual : pruned) fronts.push_back({individual});
  return fronts;
}

}  // namespace

std::vector<Direction> DirectionsOf(const SamplerInput& input) {
  std::vector<Direction> directions = {input.direction};
  directions.insert(directions.end(), input.other_directions.begin(), input.other_directions.end());
  return directions;
}

Losses ValuesOf(const Population& population, std::size_t objectives) {
  return LossesOf(population, std::vector<Direction>(objectives, Direction::kMinimize));
}

Losses LossesOf(const Population& population, const std::vector<Direction>& directions) {
  Losses losses(directions.size());
  std::vector<double> row(directions.size());
  for (const Individual& individual : population) {
    for (std::size_t k = 0; k < row.size(); ++k) row[k] = LossOf(*individual.trial, k, directions);
    losses.Add(row);
  }
  return losses;
}

bool Preferred(const Individual& a, const Individual& b, const std::vector<Direction>& directions) {
  if (a.trial->pruned != b.trial->pruned) return b.trial->pruned;
  if (a.trial->pruned) return GotFurther(a, b, directions);
  if (a.violation > 0 || b.violation > 0) return a.violation < b.violation;
  return DominatesInValues(a, b, directions);
}

Population ParentsOf(const SamplerInput& input, std::size_t size, const Select& select) {
  const std::vector<Direction> directions = DirectionsOf(input);
  const Population all = TakingPart(input, directions);
  Population parents;
  for (std::size_t generation = 1; generation * size <= all.size(); ++generation) {
    if (input.stop.stop_requested()) return {};
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>((generation - 1) * size);
    Population candidates(begin, begin + static_cast<std::ptrdiff_t>(size));
    candidates.insert(candidates.end(), parents.begin(), parents.end());
    parents.clear();
    for (const Population& front : FrontsIn(candidates, directions)) {
      if (parents.size() == size) break;
      if (parents.size() + front.size() <= size) {
        parents.insert(parents.end(), front.begin(), front.end());
        continue;
      }
      const std::vector<std::size_t> survivors = select({.chosen = parents,
                                                         .front = front,
                                                         .count = size - parents.size(),
                                                         .generation = generation,
                                                         .directions = directions});
      for (const std::size_t i : survivors) parents.push_back(front[i]);
    }
    std::sort(parents.begin(), parents.end(), CameBefore);
  }
  return parents;
}

}  // namespace espalier::samplers
