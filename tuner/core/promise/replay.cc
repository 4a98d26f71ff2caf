#include "tuner/core/promise/replay.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <utility>

namespace espalier {

namespace {

std::set<std::size_t> BestOf(Direction direction, std::span<const PastTrial> trials, int k) {
  std::vector<std::pair<double, std::size_t>> costs;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (!trials[i].complete || trials[i].points.empty()) continue;
    const double value = trials[i].points.back().value;
    if (!std::isfinite(value)) continue;
    costs.emplace_back(direction == Direction::kMinimize ? value : -value, i);
  }
  std::sort(costs.begin(), costs.end());
  if (costs.size() > static_cast<std::size_t>(k)) costs.resize(static_cast<std::size_t>(k));
  std::set<std::size_t> best;
  for (const auto& [cost, i] : costs) best.insert(i);
  return best;
}

// Elastic programs tell it when they start; of others it is known now.
std::int64_t LastStep(std::span<const PastTrial> trials) {
  std::int64_t last = 0;
  for (const PastTrial& trial : trials) {
    if (trial.complete && !trial.points.empty()) last = std::max(last, trial.points.back().step);
  }
  return last;
}

// So many of the times of all reports, spread evenly by count, without the last one.
std::vector<Time> Moments(std::span<const PastTrial> trials, int count) {
  std::vector<Time> reports;
  for (const PastTrial& trial : trials) {
    for (const IntermediateValue& point : trial.points) reports.push_back(point.at);
  }
  std::sort(reports.begin(), reports.end());
  if (!reports.empty()) reports.pop_back();
  const std::size_t kept = std::min(reports.size(), static_cast<std::size_t>(count));
  std::vector<Time> moments;
  for (std::size_t m = 0; m < kept; ++m) moments.push_back(reports[m * reports.size() / kept]);
  return moments;
}

bool EndedBy(const PastTrial& trial, Time t) { return trial.ended != Time{} && trial.ended <= t; }

}  // namespace

std::vector<Prediction> ReplayPromise(Direction direction, std::span<const PastTrial> trials,
                                      const PromiseOptions& options, int moments) {
  const std::set<std::size_t> best = BestOf(direction, trials, options.best_k);
  PromiseOptions with_end = options;
  if (with_end.max_step == 0) with_end.max_step = LastStep(trials);
  std::vector<Prediction> predictions;
  if (best.empty()) return predictions;
  for (const Time t : Moments(trials, moments)) {
    std::vector<Curve> curves;
    std::vector<std::size_t> shown;  // index of each curve's trial
    for (std::size_t i = 0; i < trials.size(); ++i) {
      const PastTrial& trial = trials[i];
      if (trial.created > t) continue;
      const auto known =
          std::upper_bound(trial.points.begin(), trial.points.end(), t,
                           [](Time at, const IntermediateValue& point) { return at < point.at; });
      const bool ended = EndedBy(trial, t);
      curves.push_back({static_cast<std::int64_t>(i),
                        trial.points.first(static_cast<std::size_t>(known - trial.points.begin())),
                        ended, ended && trial.complete});
      shown.push_back(i);
    }
    const std::vector<double> promise = Promise(direction, curves, with_end);
    for (std::size_t c = 0; c < curves.size(); ++c) {
      if (curves[c].ended || curves[c].points.empty()) continue;
      predictions.push_back({promise[c], best.contains(shown[c])});
    }
  }
  return predictions;
}

}  // namespace espalier
