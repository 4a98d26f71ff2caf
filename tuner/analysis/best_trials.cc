#include "tuner/analysis/best_trials.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "search_spaces/formats/optuna/constraints.h"
#include "tuner/core/fronts/fronts.h"

namespace espalier {

namespace {

struct Point {
  std::vector<double> values;  // less is better
  std::int64_t number = 0;
};

std::vector<Point> Comparable(const std::vector<TrialCopy>& trials,
                              const std::vector<Direction>& directions) {
  std::vector<Point> points;
  for (const TrialCopy& trial : trials) {
    if (trial.state != TrialState::kComplete || trial.values.size() != directions.size()) continue;
    if (!KeepsTo(trial.constraints)) continue;
    Point point{trial.values, trial.number};
    bool comparable = true;
    for (std::size_t i = 0; i < directions.size(); ++i) {
      if (directions[i] == Direction::kMaximize) point.values[i] = -point.values[i];
      comparable = comparable && !std::isnan(point.values[i]);
    }
    if (comparable) points.push_back(std::move(point));
  }
  return points;
}

}  // namespace

std::vector<std::int64_t> BestTrials(const std::vector<TrialCopy>& trials,
                                     const std::vector<Direction>& directions) {
  const std::vector<Point> points = Comparable(trials, directions);
  if (points.empty()) return {};
  std::vector<std::int64_t> numbers;
  if (directions.size() > 1) {
    Losses losses(directions.size());
    for (const Point& point : points) losses.Add(point.values);
    for (const std::size_t row : ParetoFront(losses)) {
      numbers.push_back(points[row].number);
    }
  } else {
    const auto better = [](const Point& a, const Point& b) {
      return std::tie(a.values, a.number) < std::tie(b.values, b.number);
    };
    numbers.push_back(std::min_element(points.begin(), points.end(), better)->number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace espalier
