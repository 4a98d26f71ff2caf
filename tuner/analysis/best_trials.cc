#include "tuner/analysis/best_trials.h"

#include <algorithm>
#include <cmath>

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

bool NoWorse(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), [](double x, double y) { return x <= y; });
}

}  // namespace

std::vector<std::int64_t> BestTrials(const std::vector<TrialCopy>& trials,
                                     const std::vector<Direction>& directions) {
  std::vector<Point> points = Comparable(trials, directions);
  std::stable_sort(points.begin(), points.end(),
                   [](const Point& a, const Point& b) { return a.values < b.values; });
  if (directions.size() <= 1 && points.size() > 1) points.resize(1);
  // In this order none is dominated by a later one, and with two directions only the last of the
  // front can dominate.
  std::vector<Point> front;
  for (Point& point : points) {
    const auto dominates = [&point](const Point& other) {
      return NoWorse(other.values, point.values) && other.values != point.values;
    };
    const auto from = directions.size() == 2 && !front.empty() ? front.end() - 1 : front.begin();
    if (std::none_of(from, front.end(), dominates)) front.push_back(std::move(point));
  }
  std::vector<std::int64_t> numbers;
  for (const Point& point : front) numbers.push_back(point.number);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace espalier
