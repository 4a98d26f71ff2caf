#include "tuner/analysis/best_over_time.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "search_spaces/formats/optuna/constraints.h"

namespace espalier {

std::vector<Improvement> BestOverTime(const std::vector<TrialCopy>& trials, std::size_t objective,
                                      Direction direction, std::size_t most) {
  ESPALIER_CHECK(most >= 2, "there is a first and a last improvement");
  const auto better = [direction](double one, double other) {
    return direction == Direction::kMaximize ? one > other : one < other;
  };
  std::vector<Improvement> ended;
  for (const TrialCopy& trial : trials) {
    if (trial.state != TrialState::kComplete || trial.values.size() <= objective) continue;
    const double value = trial.values[objective];
    if (std::isfinite(value) && KeepsTo(trial.constraints))
      ended.push_back({trial.ended, trial.id, value});
  }
  std::sort(ended.begin(), ended.end(), [&better](const Improvement& a, const Improvement& b) {
    return a.at == b.at ? better(a.value, b.value) : a.at < b.at;
  });
  std::vector<Improvement> all;
  for (const Improvement& one : ended) {
    if (all.empty() || better(one.value, all.back().value)) all.push_back(one);
  }
  if (all.size() <= most) return all;
  std::vector<Improvement> some;
  for (std::size_t i = 0; i < most; ++i) some.push_back(all[i * (all.size() - 1) / (most - 1)]);
  return some;
}

}  // namespace espalier
