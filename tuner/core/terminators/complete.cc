#include "tuner/core/terminators/complete.h"

#include <algorithm>
#include <tuple>

namespace espalier::terminators {

bool IsComplete(const TerminatorInput& input, const Observation& trial) {
  return !trial.pruned && Counts(input.direction, trial.value);
}

bool EndedBefore(const Observation& a, const Observation& b) {
  return std::tie(a.at, a.trial_number) < std::tie(b.at, b.trial_number);
}

std::vector<const Observation*> CompleteTrials(const TerminatorInput& input) {
  std::vector<const Observation*> complete;
  complete.reserve(input.ended.size());
  for (const Observation& trial : input.ended) {
    if (IsComplete(input, trial)) complete.push_back(&trial);
  }
  std::ranges::sort(complete,
                    [](const Observation* a, const Observation* b) { return EndedBefore(*a, *b); });
  return complete;
}

const Observation& BestOf(const TerminatorInput& input,
                          const std::vector<const Observation*>& complete) {
  const Observation* best = complete.front();
  for (const Observation* trial : complete) {
    if (Better(input.direction, trial->value, best->value)) best = trial;
  }
  return *best;
}

}  // namespace espalier::terminators
