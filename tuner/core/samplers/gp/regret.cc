#include "tuner/core/samplers/gp/regret.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "tuner/core/samplers/gp/fit.h"
#include "tuner/core/samplers/gp/gaussian_process.h"
#include "tuner/core/samplers/gp/gp_space.h"
#include "tuner/core/samplers/gp/kernel.h"
#include "tuner/core/samplers/gp/regret_bounds.h"
#include "tuner/core/samplers/low_discrepancy.h"

namespace espalier::samplers::gp {

namespace {

constexpr Eigen::Index kDrawnPoints = 2048;
constexpr double kRegretDelta = 0.1;
constexpr double kLeastDeviation = 1e-10;

// Trials of the space by their places, in the order in which they ended. Larger is better.
struct PlacedValues {
  std::vector<Point> points;
  std::vector<double> values;
};

PlacedValues PlacedIn(const GpSpace& space, Direction direction,
                      std::span<const Observation* const> trials) {
  PlacedValues placed;
  for (const Observation* trial : trials) {
    if (!std::isfinite(trial->value)) continue;
    std::optional<Point> point = space.PlaceOf(*trial->parameters);
    if (!point) continue;
    placed.points.push_back(*std::move(point));
    placed.values.push_back(direction == Direction::kMinimize ? -trial->value : trial->value);
  }
  return placed;
}

// Of the first `among`, the `count` best, and those that are as good as the last of them; never
// more than `most`. By place, ascending.
std::vector<std::size_t> BestOf(const std::vector<double>& values, std::size_t among,
                                std::size_t count, std::size_t most) {
  std::vector<std::size_t> best(among);
  std::iota(best.begin(), best.end(), 0);
  std::stable_sort(best.begin(), best.end(),
                   [&values](std::size_t a, std::size_t b) { return values[a] > values[b]; });
  while (count > 0 && count < among && values[best[count]] == values[best[count - 1]]) ++count;
  best.resize(std::min({count, among, most}));
  std::sort(best.begin(), best.end());
  return best;
}

// Values less their mean, in their standard deviations.
struct StandardisedTrials {
  Observed observed;
  double deviation;
};

StandardisedTrials StandardisedOf(const GpSpace& space, const PlacedValues& placed,
                                  const std::vector<std::size_t>& which) {
  const auto rows = static_cast<Eigen::Index>(which.size());
  StandardisedTrials trials{{Points(rows, space.axes()), Eigen::VectorXd(rows), {}}, 0};
  for (Eigen::Index row = 0; row < rows; ++row) {
    const std::size_t i = which[static_cast<std::size_t>(row)];
    trials.observed.points.row(row) = placed.points[i];
    trials.observed.values[row] = placed.values[i];
  }
  trials.observed.values.array() -= trials.observed.values.mean();
  trials.deviation =
      std::max(kLeastDeviation, std::sqrt(trials.observed.values.array().square().mean()));
  trials.observed.values /= trials.deviation;
  for (Eigen::Index axis = 0; axis < space.axes(); ++axis) {
    trials.observed.unordered.push_back(space.unordered(axis));
  }
  return trials;
}

GaussianProcess FittedTo(const Observed& observed, const KernelParameters& start,
                         bool deterministic, const std::stop_token& stop) {
  return {Kernel(observed.unordered, FitParameters(observed, start, deterministic, stop)),
          observed.points, observed.values, observed.points.rows()};
}

Points DrawnFrom(const GpSpace& space, std::uint64_t seed) {
  Points drawn(kDrawnPoints, space.axes());
  Point cube(space.axes());
  for (Eigen::Index i = 0; i < kDrawnPoints; ++i) {
    for (Eigen::Index axis = 0; axis < space.axes(); ++axis) {
      cube[axis] = ScrambledSobolCoordinate(static_cast<std::uint64_t>(i),
                                            static_cast<std::size_t>(axis), seed);
    }
    drawn.row(i) = space.Masked(space.FromCube(cube));
  }
  return drawn;
}

}  // namespace

bool HasAxes(const SearchSpace& space) { return GpSpace(space).axes() > 0; }

std::optional<double> RegretBound(const SearchSpace& space, Direction direction,
                                  std::span<const Observation* const> trials,
                                  const RegretTrials& which, std::uint64_t seed,
                                  const std::stop_token& stop) {
  const GpSpace places(space);
  if (places.axes() == 0) return std::nullopt;
  const PlacedValues placed = PlacedIn(places, direction, trials);
  const std::size_t n = placed.values.size();
  if (n == 0) return std::nullopt;
  const auto share = static_cast<std::size_t>(which.best_share * static_cast<double>(n));
  const StandardisedTrials best = StandardisedOf(
      places, placed, BestOf(placed.values, n, std::max(share, which.least), kMostRegretTrials));
  const GaussianProcess process =
      FittedTo(best.observed, DefaultParameters(places.axes(), false), false, stop);
  return best.deviation *
         RegretBoundOf(process, best.observed.points, DrawnFrom(places, seed), kRegretDelta);
}

std::optional<double> RegretChangeBound(const SearchSpace& space, Direction direction,
                                        std::span<const Observation* const> trials,
                                        const RegretChangeSettings& settings, std::uint64_t seed,
                                        const std::stop_token& stop) {
  const GpSpace places(space);
  if (places.axes() == 0) return std::nullopt;
  const PlacedValues placed = PlacedIn(places, direction, trials);
  const std::size_t n = placed.values.size();
  if (n < 2) return std::nullopt;
  std::vector<std::size_t> which = BestOf(placed.values, n - 1, n - 1, kMostRegretTrials - 1);
  which.push_back(n - 1);
  const Observed all = StandardisedOf(places, placed, which).observed;
  const Eigen::Index last = all.values.size() - 1;
  const Observed but_last{all.points.topRows(last), all.values.head(last), all.unordered};
  const bool deterministic = settings.deterministic;
  const GaussianProcess before =
      FittedTo(but_last, DefaultParameters(places.axes(), deterministic), deterministic, stop);
  const GaussianProcess after = FittedTo(all, before.kernel().parameters(), deterministic, stop);
  return RegretChangeBoundOf({before, after, all.points, all.values}, DrawnFrom(places, seed),
                             settings.delta);
}

double WorkOfRegretBound(std::size_t trials, const SearchSpace& space) {
  constexpr double kOperations = 200;  // of matrices, in the time of one kernel on one axis
  constexpr double kSteps = 30;        // of a fit
  const auto n = static_cast<double>(std::min(trials, kMostRegretTrials));
  const auto axes = static_cast<double>(space.dimensions().size());
  return kSteps * n * n * (n + 5 * axes) / kOperations +
         static_cast<double>(kDrawnPoints) * (10 * axes + n * axes / 20 + n * n / kOperations);
}

}  // namespace espalier::samplers::gp
