#include "tuner/core/population/bandit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "search_spaces/gaussian.h"
#include "tuner/core/population/time_varying_process.h"
#include "tuner/core/samplers/gp/gp_space.h"

namespace espalier {

namespace {

using populations::Fitted;
using populations::Point;
using populations::Points;
using populations::TimedKernel;
using populations::TimedPoints;
using populations::TimeVaryingProcess;
using samplers::gp::GpSpace;

// Kernels are fitted to the newest so many changes, and not to fewer than the least.
constexpr Eigen::Index kMostFitted = 60;
constexpr Eigen::Index kLeastFitted = 4;
// Of members in the midst of an interval the last so many are taken into account.
constexpr std::size_t kMostPending = 100;
// Candidates all over the space, and then around the best so far, ever closer.
constexpr Eigen::Index kDrawnCandidates = 256;
constexpr Eigen::Index kNearCandidates = 64;
constexpr double kFirstRadius = 0.1;
constexpr int kCloserRounds = 3;
// Of the width of the bound: PB2, section 4.
constexpr double kWidthOffset = 0.2;
constexpr double kWidthRate = 0.4;

// The part of the space that is explored.
SearchSpace ExploredSpace(const PopulationSpec& population, const SearchSpace& space) {
  std::vector<SearchSpace::Dimension> dimensions;
  for (const std::string& name : population.parameters) {
    const std::optional<std::size_t> found = space.Find(name);
    ESPALIER_CHECK(found.has_value(), "what is explored is of the space");
    dimensions.push_back(space.dimensions()[*found]);
  }
  absl::StatusOr<SearchSpace> explored = SearchSpace::Make(std::move(dimensions));
  ESPALIER_CHECK(explored.ok(), "each dimension is of a space");
  return *std::move(explored);
}

// For each value the share of all that is worse, equals by half: 0 to 1.
std::vector<double> Ranks(const std::vector<double>& scores) {
  std::vector<double> sorted = scores;
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> ranks;
  for (const double score : scores) {
    const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), score);
    const double middle =
        0.5 * static_cast<double>((first - sorted.begin()) + (last - sorted.begin()));
    ranks.push_back(middle / static_cast<double>(sorted.size()));
  }
  return ranks;
}

class Model {
 public:
  Model(const PopulationSpec& population, const GpSpace& space, Direction direction,
        std::span<const PopulationMember> members, const Takeover& takeover)
      : population_(population),
        space_(space),
        direction_(direction),
        members_(members),
        takeover_(takeover) {
    TakeChanges();
    TakePending();
    TimedKernel kernel;
    for (Eigen::Index axis = 0; axis < space_.axes(); ++axis) {
      kernel.unordered.push_back(space_.unordered(axis));
    }
    kernel.parameters.inverse_squared_lengths = Eigen::VectorXd::Constant(space_.axes(), 4);
    kernel.parameters.noise = 0.1;
    if (seen_.points.rows() >= kLeastFitted) {
      const Eigen::Index fitted = std::min(seen_.points.rows(), kMostFitted);
      kernel = Fitted({seen_.points.topRows(fitted), seen_.times.head(fitted)},
                      scores_.head(fitted), std::move(kernel));
    }
    process_.emplace(std::move(kernel), seen_, scores_, pending_);
    const auto seen = static_cast<double>(seen_.points.rows());
    width_ = std::sqrt(kWidthOffset + std::max(0.0, std::log(kWidthRate * seen)));
  }

  // The upper confidence bound of each row.
  Eigen::VectorXd BoundsAt(const Points& candidates) const {
    const TimeVaryingProcess::Posterior posterior = process_->At(
        {candidates, Eigen::VectorXd::Constant(candidates.rows(), IntervalAt(takeover_.step))});
    return posterior.mean + width_ * posterior.variance.cwiseSqrt();
  }

 private:
  double IntervalAt(std::int64_t step) const {
    const std::int64_t interval = step / population_.interval;
    return static_cast<double>(interval);
  }
  // Of a member's parameters. None: the space does not contain them.
  std::optional<Point> PlaceOf(std::size_t member) const {
    Parameters explored;
    for (const std::string& name : population_.parameters) {
      const ParameterValue* value = Find(*members_[member].parameters, name);
      if (value == nullptr) return std::nullopt;
      explored.push_back({name, *value});
    }
    return space_.PlaceOf(explored);
  }

  // By place and interval.
  void Fill(const std::vector<std::pair<Point, double>>& rows, TimedPoints& points) const {
    points.points.resize(static_cast<Eigen::Index>(rows.size()), space_.axes());
    points.times.resize(points.points.rows());
    for (Eigen::Index i = 0; i < points.points.rows(); ++i) {
      points.points.row(i) = rows[static_cast<std::size_t>(i)].first;
      points.times[i] = rows[static_cast<std::size_t>(i)].second;
    }
  }

  void TakeChanges() {
    const std::vector<ScoreChange> changes =
        ScoreChanges(population_, direction_, members_, takeover_.step, kMostScoreChanges);
    std::vector<std::pair<Point, double>> rows;
    std::vector<double> scores;
    for (auto from = changes.begin(); from != changes.end();) {
      const auto to = std::find_if(from, changes.end(), [from](const ScoreChange& change) {
        return change.begin != from->begin;
      });
      std::vector<double> improved;
      for (auto at = from; at != to; ++at) improved.push_back(at->change);
      const std::vector<double> ranks = Ranks(improved);
      for (auto at = from; at != to; ++at) {
        const std::optional<Point> place = PlaceOf(at->member);
        if (!place || rows.size() == kMostScoreChanges) continue;
        rows.emplace_back(*place, IntervalAt(at->begin));
        scores.push_back(NormalQuantile(ranks[static_cast<std::size_t>(at - from)]));
      }
      from = to;
    }
    Fill(rows, seen_);
    scores_ = Eigen::Map<const Eigen::VectorXd>(scores.data(), seen_.points.rows());
  }

  // Those that train, or wait for a slot.
  void TakePending() {
    std::vector<std::pair<Point, double>> rows;
    for (std::size_t i = members_.size(); i-- > 0 && rows.size() < kMostPending;) {
      if (members_[i].curve.ended || i == takeover_.loser) continue;
      if (const auto place = PlaceOf(i)) rows.emplace_back(*place, IntervalAt(members_[i].step));
    }
    Fill(rows, pending_);
  }

  const PopulationSpec& population_;
  const GpSpace& space_;
  const Direction direction_;
  const std::span<const PopulationMember> members_;
  const Takeover takeover_;
  TimedPoints seen_;
  Eigen::VectorXd scores_;
  TimedPoints pending_;
  double width_ = 0;
  std::optional<TimeVaryingProcess> process_;
};

// The best of candidates all over the space, then of some around it, ever closer; of those that are
// to be passed over only if all over the space there is no other.
Point Best(const GpSpace& space, const Model& model,
           const std::function<bool(const Point&)>& pass_over, Random& random) {
  Point best;
  double most = -std::numeric_limits<double>::infinity();
  const auto look = [&](const Points& candidates) {
    Eigen::VectorXd bounds = model.BoundsAt(candidates);
    for (Eigen::Index looked = 0; looked < bounds.size(); ++looked) {
      Eigen::Index at = 0;
      const double bound = bounds.maxCoeff(&at);
      if (best.size() > 0 && !(bound > most)) return;
      const Point candidate = candidates.row(at);
      if (!pass_over(candidate)) {
        most = bound;
        best = candidate;
        return;
      }
      bounds[at] = -std::numeric_limits<double>::infinity();
    }
  };
  Points drawn(kDrawnCandidates, space.axes());
  for (Eigen::Index i = 0; i < drawn.rows(); ++i) {
    Point cube(space.axes());
    for (double& place : cube) place = random.Uniform();
    drawn.row(i) = space.FromCube(cube);
  }
  look(drawn);
  if (best.size() == 0) {
    Eigen::Index at = 0;
    model.BoundsAt(drawn).maxCoeff(&at);
    best = drawn.row(at);
  }
  double radius = kFirstRadius;
  for (int round = 0; round < kCloserRounds; ++round, radius /= 4) {
    Points near(kNearCandidates, space.axes());
    for (Eigen::Index i = 0; i < near.rows(); ++i) {
      Point moved = best;
      for (Eigen::Index axis = 0; axis < space.axes(); ++axis) {
        if (space.unordered(axis)) continue;
        const double place = std::clamp(best[axis] + radius * random.Normal(), 0.0, 1.0);
        moved[axis] = space.kind(axis) == samplers::gp::AxisKind::kGrid
                          ? space.PlaceOfValue(axis, space.Nearest(axis, place))
                          : place;
      }
      near.row(i) = moved;
    }
    look(near);
  }
  return best;
}

}  // namespace

Parameters ExploreByBandit(const PopulationSpec& population, const SearchSpace& space,
                           Direction direction, std::span<const PopulationMember> members,
                           const Takeover& takeover,
                           const std::function<bool(const Parameters&)>& trained, Random& random) {
  const Parameters& winners = *members[takeover.winner].parameters;
  const SearchSpace explored = ExploredSpace(population, space);
  const GpSpace axes(explored);
  if (axes.axes() == 0) return winners;  // each has but one value
  const auto at = [&](const Point& point) {
    Parameters parameters = winners;
    for (const Parameter& chosen : axes.ParametersAt(point)) {
      const auto given = std::ranges::find(parameters, chosen.name, &Parameter::name);
      ESPALIER_CHECK(given != parameters.end(), "a member has all that is explored");
      given->value = chosen.value;
    }
    return parameters;
  };
  const Model model(population, axes, direction, members, takeover);
  return at(Best(
      axes, model, [&](const Point& point) { return trained(at(point)); }, random));
}

}  // namespace espalier
