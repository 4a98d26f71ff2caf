#include "tuner/core/samplers/gp/before_trials.h"

#include <utility>

#include "tuner/core/samplers/before.h"

namespace espalier::samplers::gp {

std::optional<BeforeTrials> BeforeTrialsOf(const SamplerInput& input, const GpSpace& space) {
  if (input.before.empty()) return std::nullopt;
  const std::vector<bool> shared = SharedDimensions(input);
  BeforeTrials before;
  for (Eigen::Index axis = 0; axis < space.axes(); ++axis) {
    if (shared[space.dimension(axis)]) before.axes.push_back(axis);
  }
  if (before.axes.empty()) return std::nullopt;
  const std::vector<Parameters> completed = CompletedBefore(input);
  const auto n = static_cast<Eigen::Index>(completed.size());
  before.points.resize(n, space.axes());
  before.values.resize(n, static_cast<Eigen::Index>(input.objectives()));
  for (Eigen::Index i = 0; i < n; ++i) {
    const auto trial = static_cast<std::size_t>(i);
    before.points.row(i) = *space.PlaceOf(completed[trial]);
    before.values(i, 0) = input.before[trial].score;
    for (Eigen::Index k = 1; k < before.values.cols(); ++k) {
      before.values(i, k) = input.before[trial].other_scores[static_cast<std::size_t>(k - 1)];
    }
  }
  for (Eigen::Index k = 0; k < before.values.cols(); ++k) {
    before.values.col(k) = Standardise(before.values.col(k)).values;
  }
  return before;
}

Points FailedOf(const SamplerInput& input, const GpSpace& space) {
  std::vector<Point> failed;
  for (const Observation& trial : input.ended) {
    if (auto point = space.PlaceOf(*trial.parameters)) failed.push_back(*std::move(point));
  }
  if (failed.size() > std::size_t{kMostRunning}) {
    failed.erase(failed.begin(), failed.end() - kMostRunning);
  }
  Points points(static_cast<Eigen::Index>(failed.size()), space.axes());
  for (std::size_t i = 0; i < failed.size(); ++i) {
    points.row(static_cast<Eigen::Index>(i)) = failed[i];
  }
  return points;
}

}  // namespace espalier::samplers::gp
