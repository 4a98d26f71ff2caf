#include "tuner/core/samplers/gp/trials.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace espalier::samplers::gp {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// How far values that are drawn together are from where that begins, in units of how good the best
// ones are.
constexpr double kMostUnits = 5;

struct Seen {
  const Observation* observation;
  Point point;
  std::vector<double> scores;  // by objective, larger is better; NaN: none that counts
  bool scored = false;         // has them all
};

// A value that does not count is none, and neither is an infinity that is worse than all.
double ScoreOf(Direction direction, double value) {
  if (!std::isfinite(value)) return kNaN;
  return direction == Direction::kMinimize ? -value : value;
}

// Values of a trial that was pruned are those of a moment, which none of several objectives can be
// compared by.
bool IsCutOff(const SamplerInput& input, const Observation& observation) {
  return observation.pruned && input.objectives() > 1;
}

// By trial number. Trials that the space does not contain are left out.
std::vector<Seen> SeenIn(const SamplerInput& input, const GpSpace& space) {
  std::vector<Seen> all;
  for (const Observation& observation : input.ended) {
    if (IsCutOff(input, observation)) continue;
    std::optional<Point> point = space.PlaceOf(*observation.parameters);
    if (!point) continue;
    Seen seen{&observation, *std::move(point), {ScoreOf(input.direction, observation.value)}};
    for (std::size_t i = 0; i < input.other_directions.size(); ++i) {
      const bool told = i < observation.other_values.size();
      seen.scores.push_back(told ? ScoreOf(input.other_directions[i], observation.other_values[i])
                                 : kNaN);
    }
    seen.scored = std::none_of(seen.scores.begin(), seen.scores.end(),
                               [](double score) { return std::isnan(score); });
    all.push_back(std::move(seen));
  }
  std::sort(all.begin(), all.end(), [](const Seen& a, const Seen& b) {
    return a.observation->trial_number < b.observation->trial_number;
  });
  return all;
}

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * values[middle - 1] + 0.5 * values[middle];
}

// Gives each trial scores that count.
void Impute(std::vector<Seen>& seen) {
  const bool any_complete = std::any_of(
      seen.begin(), seen.end(), [](const Seen& s) { return s.scored && !s.observation->pruned; });
  for (std::size_t k = 0; k < seen.front().scores.size(); ++k) {
    std::vector<double> complete;
    for (const Seen& s : seen) {
      if (s.scored && !(any_complete && s.observation->pruned)) complete.push_back(s.scores[k]);
    }
    const double worst = *std::min_element(complete.begin(), complete.end());
    const double median = MedianOf(std::move(complete));
    for (Seen& s : seen) {
      if (!s.scored) {
        s.scores[k] = worst;
      } else if (any_complete && s.observation->pruned) {
        s.scores[k] = std::min(s.scores[k], median);
      }
    }
  }
}

// Of scores of all objectives, those that none dominates.
std::vector<const Seen*> FrontIn(const std::vector<Seen>& seen) {
  std::vector<const Seen*> sorted;
  for (const Seen& s : seen) sorted.push_back(&s);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Seen* a, const Seen* b) { return a->scores > b->scores; });
  std::vector<const Seen*> front;  // what dominates a trial comes before it
  for (const Seen* s : sorted) {
    const bool dominated = std::any_of(front.begin(), front.end(), [s](const Seen* other) {
      return std::equal(s->scores.begin(), s->scores.end(), other->scores.begin(),
                        std::less_equal<>());
    });
    if (!dominated) front.push_back(s);
  }
  return front;
}

// From 0 on, as x at first, then as a logarithm, and never more than kMostUnits.
double Compressed(double x, double unit) {
  const double units = std::min(x / unit, std::numeric_limits<double>::max());
  return unit * kMostUnits * std::tanh(std::log1p(units) / kMostUnits);
}

// Draws together the scores that are worse than both the median and all of the front, in units of
// how far the best are from there. Differences among bad trials are often orders of magnitude above
// those among good ones, and would be all that the model sees.
void CompressBad(std::vector<Seen>& seen) {
  const std::vector<const Seen*> front = FrontIn(seen);
  for (std::size_t k = 0; k < seen.front().scores.size(); ++k) {
    double size = 0;  // sums of large scores may have none
    for (const Seen& s : seen) size = std::max(size, std::abs(s.scores[k]));
    std::vector<double> all;
    for (Seen& s : seen) all.push_back(size > 0 ? s.scores[k] /= size : s.scores[k]);
    double pivot = MedianOf(all);
    for (const Seen* s : front) pivot = std::min(pivot, s->scores[k]);
    std::sort(all.begin(), all.end());
    if (pivot == all.back()) {  // most are as good as the best: from the next worse one on
      const auto below = std::lower_bound(all.begin(), all.end(), all.back());
      if (below == all.begin()) continue;
      pivot = *(below - 1);
    }
    const double unit = all.back() - pivot;
    for (Seen& s : seen) {
      if (s.scores[k] < pivot) s.scores[k] = pivot - Compressed(pivot - s.scores[k], unit);
    }
  }
}

// One trial for all that are at the same point, with the mean of their values: the newest.
void MergeRepeated(std::vector<Seen>& seen) {
  std::map<std::vector<double>, std::vector<std::size_t>> at;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    at[{seen[i].point.begin(), seen[i].point.end()}].push_back(i);
  }
  if (at.size() == seen.size()) return;
  std::vector<bool> kept(seen.size());
  for (const auto& [point, which] : at) {
    Seen& newest = seen[which.back()];
    kept[which.back()] = true;
    for (std::size_t k = 0; k < newest.scores.size(); ++k) {
      double mean = 0;
      for (const std::size_t i : which)
        mean += seen[i].scores[k] / static_cast<double>(which.size());
      newest.scores[k] = mean;
    }
  }
  std::vector<Seen> left;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (kept[i]) left.push_back(std::move(seen[i]));
  }
  seen = std::move(left);
}

// The trials in the order in which they are taken: some that stand for all first.
class Selection {
 public:
  Selection(const Points& points, const Eigen::MatrixXd& values, const GpSpace& space)
      : points_(points),
        values_(values),
        space_(space),
        taken_(static_cast<std::size_t>(points.rows())),
        distance_(Eigen::ArrayXd::Constant(points.rows(), kInfinity)) {}

  std::vector<Eigen::Index> Order() {
    TakeUpTo(std::min(kLeadingTrials, points_.rows()));
    if (points_.rows() > kMostTrials) {
      TakeUpTo(kMostTrials);
    } else {
      for (Eigen::Index i = 0; i < points_.rows(); ++i) Take(i);
    }
    return order_;
  }

 private:
  Eigen::Index taken() const { return static_cast<Eigen::Index>(order_.size()); }

  void Take(Eigen::Index i) {
    if (taken_[static_cast<std::size_t>(i)]) return;
    taken_[static_cast<std::size_t>(i)] = true;
    order_.push_back(i);
  }

  // Of those that are left, half by their values, each objective in turn, and half by distance.
  void TakeUpTo(Eigen::Index count) {
    if (count == points_.rows()) {
      for (Eigen::Index i = 0; i < count; ++i) Take(i);
      return;
    }
    std::vector<std::vector<Eigen::Index>> best;
    for (Eigen::Index k = 0; k < values_.cols(); ++k) {
      best.emplace_back(static_cast<std::size_t>(points_.rows()));
      std::iota(best.back().begin(), best.back().end(), Eigen::Index{0});
      std::stable_sort(best.back().begin(), best.back().end(), [&](Eigen::Index a, Eigen::Index b) {
        return values_(a, k) > values_(b, k);
      });
    }
    const Eigen::Index half = taken() + (count - taken()) / 2;
    for (std::size_t rank = 0; taken() < half; ++rank) {
      for (const auto& of_objective : best) {
        if (taken() < half) Take(of_objective[rank]);
      }
    }
    while (taken() < count) Take(Farthest());
  }

  Eigen::Index Farthest() {
    for (; measured_ < order_.size(); ++measured_) Measure(points_.row(order_[measured_]));
    Eigen::Index farthest = 0;
    distance_.maxCoeff(&farthest);
    return farthest;
  }

  void Measure(const Point& to) {
    Eigen::ArrayXd distance = Eigen::ArrayXd::Zero(points_.rows());
    for (Eigen::Index axis = 0; axis < points_.cols(); ++axis) {
      const auto places = points_.col(axis).array();
      if (space_.unordered(axis)) {
        distance += (places != to[axis]).cast<double>();
      } else {
        distance += (places - to[axis]).square();
      }
    }
    distance_ = distance_.min(distance);
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      if (taken_[i]) distance_[static_cast<Eigen::Index>(i)] = -1;
    }
  }

  const Points& points_;
  const Eigen::MatrixXd& values_;
  const GpSpace& space_;
  std::vector<bool> taken_;
  std::vector<Eigen::Index> order_;
  Eigen::ArrayXd distance_;  // to the nearest one taken; -1: it is
  std::size_t measured_ = 0;
};

std::size_t ConstraintsIn(const std::vector<Seen>& seen) {
  std::size_t most = 0;
  for (const Seen& s : seen) most = std::max(most, s.observation->constraints.size());
  return most;
}

bool IsFeasible(const Observation& observation, std::size_t constraints) {
  if (observation.constraints.size() < constraints) return false;
  return std::all_of(observation.constraints.begin(), observation.constraints.end(),
                     [](double value) { return value <= 0; });
}

// Of the i-th constraint. Infinities are as far as what is farthest beside them. Values that are
// far from 0 are drawn together, in units of the median distance.
ConstraintValues ConstraintOf(const std::vector<Seen>& seen, std::size_t constraint,
                              const std::vector<Eigen::Index>& order) {
  std::vector<Eigen::Index> told;
  double least = kInfinity;
  double most = -kInfinity;
  const auto value_of = [&](Eigen::Index i) {
    const auto& values = seen[static_cast<std::size_t>(i)].observation->constraints;
    return constraint < values.size() ? values[constraint] : kNaN;
  };
  ConstraintValues values;
  for (std::size_t place = 0; place < order.size(); ++place) {
    const double value = value_of(order[place]);
    if (std::isnan(value)) continue;
    told.push_back(order[place]);
    if (place < static_cast<std::size_t>(kLeadingTrials)) ++values.leading;
    if (!std::isfinite(value)) continue;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  if (least > most) least = -1, most = 1;
  const auto n = static_cast<Eigen::Index>(told.size());
  values.points.resize(n, seen.front().point.size());
  Eigen::VectorXd kept(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const Eigen::Index which = told[static_cast<std::size_t>(i)];
    values.points.row(i) = seen[static_cast<std::size_t>(which)].point;
    kept[i] = -std::clamp(value_of(which), least, most);
  }
  if (n == 0) return values;
  const Eigen::VectorXd distances = kept.cwiseAbs();
  const double unit = MedianOf({distances.begin(), distances.end()});
  if (unit > 0) {
    for (double& value : kept) value = std::copysign(Compressed(std::abs(value), unit), value);
  }
  Standardised standardised = Standardise(kept);
  values.values = std::move(standardised.values);
  values.threshold = standardised.zero;
  return values;
}

}  // namespace

Standardised Standardise(const Eigen::VectorXd& values) {
  const double size = values.cwiseAbs().maxCoeff();
  if (!(size > 0)) return {values, 0};
  const Eigen::ArrayXd scaled = values.array() / size;
  const double mean = scaled.mean();
  const double deviation = std::max(1e-10, std::sqrt((scaled - mean).square().mean()));
  return {((scaled - mean) / deviation).matrix(), -mean / deviation};
}

Points RunningOf(const SamplerInput& input, const GpSpace& space) {
  std::vector<Point> running;
  for (const Observation& observation : input.ended) {
    if (!IsCutOff(input, observation)) continue;
    if (auto point = space.PlaceOf(*observation.parameters)) running.push_back(*std::move(point));
  }
  if (std::ssize(running) > kMostPruned) {
    running.erase(running.begin(), running.end() - kMostPruned);
  }
  for (const Parameters* parameters : input.running) {
    if (auto point = space.PlaceOf(*parameters)) running.push_back(*std::move(point));
  }
  if (running.size() > std::size_t{kMostRunning}) {
    running.erase(running.begin(), running.end() - kMostRunning);
  }
  Points points(static_cast<Eigen::Index>(running.size()), space.axes());
  for (std::size_t i = 0; i < running.size(); ++i) {
    points.row(static_cast<Eigen::Index>(i)) = running[i];
  }
  return points;
}

std::optional<GpTrials> TrialsOf(const SamplerInput& input, const GpSpace& space, std::size_t least,
                                 bool merge_repeated) {
  std::vector<Seen> seen = SeenIn(input, space);
  const auto scored =
      std::count_if(seen.begin(), seen.end(), [](const Seen& s) { return s.scored; });
  if (static_cast<std::size_t>(scored) < std::max<std::size_t>(least, 1)) return std::nullopt;
  Impute(seen);
  CompressBad(seen);
  if (merge_repeated) MergeRepeated(seen);
  const auto n = static_cast<Eigen::Index>(seen.size());
  Points points(n, space.axes());
  Eigen::MatrixXd values(n, static_cast<Eigen::Index>(input.objectives()));
  for (Eigen::Index i = 0; i < n; ++i) {
    const Seen& s = seen[static_cast<std::size_t>(i)];
    points.row(i) = s.point;
    for (Eigen::Index k = 0; k < values.cols(); ++k) {
      values(i, k) = s.scores[static_cast<std::size_t>(k)];
    }
  }
  for (Eigen::Index k = 0; k < values.cols(); ++k) {
    values.col(k) = Standardise(values.col(k)).values;
  }
  const std::vector<Eigen::Index> order = Selection(points, values, space).Order();
  GpTrials trials;
  trials.points = points(order, Eigen::all);
  trials.values = values(order, Eigen::all);
  trials.leading = std::min<Eigen::Index>(kLeadingTrials, trials.points.rows());
  const std::size_t constraints = ConstraintsIn(seen);
  for (const Eigen::Index i : order) {
    trials.feasible.push_back(
        IsFeasible(*seen[static_cast<std::size_t>(i)].observation, constraints));
  }
  for (std::size_t c = 0; c < constraints; ++c) {
    ConstraintValues told = ConstraintOf(seen, c, order);
    if (told.points.rows() > 0) trials.constraints.push_back(std::move(told));
  }
  trials.running = RunningOf(input, space);
  return trials;
}

}  // namespace espalier::samplers::gp
