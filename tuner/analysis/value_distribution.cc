#include "tuner/analysis/value_distribution.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace espalier {

std::vector<ValueShare> ValueDistribution(const std::vector<TrialCopy>& trials,
                                          std::size_t objective, std::size_t most_points) {
  ESPALIER_CHECK(most_points >= 2, "a distribution has a least and a greatest point");
  std::vector<double> values;
  for (const TrialCopy& trial : trials) {
    if (trial.state != TrialState::kComplete || trial.values.size() <= objective) continue;
    if (std::isfinite(trial.values[objective])) values.push_back(trial.values[objective]);
  }
  std::sort(values.begin(), values.end());
  std::vector<ValueShare> all;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i + 1 < values.size() && values[i + 1] == values[i]) continue;
    all.push_back({values[i], static_cast<double>(i + 1) / static_cast<double>(values.size())});
  }
  if (all.size() <= most_points) return all;
  std::vector<ValueShare> some;
  for (std::size_t i = 0; i < most_points; ++i) {
    some.push_back(all[i * (all.size() - 1) / (most_points - 1)]);
  }
  return some;
}

}  // namespace espalier
