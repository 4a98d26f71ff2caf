#include "tuner/core/samplers/gp/search.h"

#include <algorithm>
#include <limits>

#include "tuner/core/samplers/gp/local_search.h"
#include "tuner/core/samplers/low_discrepancy.h"

namespace espalier::samplers::gp {
namespace {

constexpr Eigen::Index kAtOnce = 256;  // points between two looks at `stop`

Points Filling(const GpSpace& space, std::size_t count, Random& random) {
  const std::uint64_t seed = random.Next();
  Points points(static_cast<Eigen::Index>(count), space.axes());
  Point cube(space.axes());
  for (std::size_t i = 0; i < count; ++i) {
    for (Eigen::Index axis = 0; axis < space.axes(); ++axis) {
      cube[axis] = ScrambledSobolCoordinate(i, static_cast<std::size_t>(axis), seed);
    }
    points.row(static_cast<Eigen::Index>(i)) = space.FromCube(cube);
  }
  return points;
}

Points MaskedOf(const GpSpace& space, const Points& points) {
  Points masked(points.rows(), points.cols());
  for (Eigen::Index i = 0; i < points.rows(); ++i) masked.row(i) = space.Masked(points.row(i));
  return masked;
}

// The best one, and others drawn without repetition by what they are worth against it.
std::vector<Eigen::Index> DrawStarts(const Eigen::VectorXd& log_worth, std::size_t count,
                                     Random& random) {
  Eigen::Index best = 0;
  const double most = log_worth.maxCoeff(&best);
  std::vector<Eigen::Index> chosen = {best};
  Eigen::ArrayXd worth = (log_worth.array() - most).exp();
  worth[best] = 0;
  while (chosen.size() < count) {
    double left = random.Uniform() * worth.sum();
    if (!(left > 0)) break;
    Eigen::Index drawn = -1;
    for (Eigen::Index i = 0; i < worth.size() && left >= 0; ++i) {
      if (worth[i] <= 0) continue;
      drawn = i;
      left -= worth[i];
    }
    if (drawn < 0) break;
    chosen.push_back(drawn);
    worth[drawn] = 0;
  }
  return chosen;
}

}  // namespace

std::vector<Candidate> SearchMaximum(const GpSpace& space, const Acquisition& acquisition,
                                     const Points& known, const SearchSettings& settings,
                                     Random& random, const std::stop_token& stop) {
  const Points filling = Filling(space, settings.preliminary, random);
  const Points masked = MaskedOf(space, filling);
  Eigen::VectorXd coarse =
      Eigen::VectorXd::Constant(masked.rows(), -std::numeric_limits<double>::infinity());
  for (Eigen::Index i = 0; i < masked.rows() && !stop.stop_requested(); i += kAtOnce) {
    const Eigen::Index rows = std::min(kAtOnce, masked.rows() - i);
    coarse.segment(i, rows) = acquisition.CoarseValues(masked.middleRows(i, rows));
  }
  coarse = coarse.array()
               .isNaN()
               .select(-std::numeric_limits<double>::infinity(), coarse.array())
               .matrix();
  const std::vector<Eigen::Index> drawn =
      DrawStarts(coarse, settings.starts - static_cast<std::size_t>(known.rows()), random);
  Points starts(static_cast<Eigen::Index>(drawn.size()) + known.rows(), space.axes());
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    starts.row(static_cast<Eigen::Index>(i)) = filling.row(drawn[i]);
  }
  for (Eigen::Index i = 0; i < known.rows(); ++i) {
    // Where an option activates what a known point does not have, it starts as in the best one.
    const std::vector<bool> active = space.Active(known.row(i));
    const auto row = static_cast<Eigen::Index>(drawn.size()) + i;
    starts.row(row) = filling.row(drawn.front());
    for (Eigen::Index axis = 0; axis < space.axes(); ++axis) {
      if (active[static_cast<std::size_t>(axis)]) starts(row, axis) = known(i, axis);
    }
  }
  std::vector<Candidate> candidates;
  if (!stop.stop_requested()) {
    LocalSearch search(space, acquisition, starts);
    search.Run(stop);
    for (Eigen::Index i = 0; i < starts.rows(); ++i) {
      candidates.push_back({space.Masked(search.points().row(i)), search.values()[i]});
    }
  }
  const auto better = [](const Candidate& a, const Candidate& b) { return a.value > b.value; };
  std::stable_sort(candidates.begin(), candidates.end(), better);
  std::vector<Candidate> preliminary;
  for (Eigen::Index i = 0; i < masked.rows(); ++i)
    preliminary.push_back({masked.row(i), coarse[i]});
  std::stable_sort(preliminary.begin(), preliminary.end(), better);
  candidates.insert(candidates.end(), preliminary.begin(), preliminary.end());
  return candidates;
}

}  // namespace espalier::samplers::gp
